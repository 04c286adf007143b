package native

import (
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

const watchPace = 2 * time.Second

// Arrange puts the options of a command before its other arguments, so that `topic describe orders -o json` means what it says: the library takes what follows the first argument for arguments.
// --watch gets its pace, which may be left out. Commands that parse their arguments themselves get them as they are; args begin with the program's name.
func Arrange(args []string, commands []*cli.Command) []string {
	at, current, level := 1, (*cli.Command)(nil), commands
	for at < len(args) {
		next := slices.IndexFunc(level, func(c *cli.Command) bool { return c.HasName(args[at]) })
		if next < 0 {
			break
		}
		current, level = level[next], level[next].Subcommands
		at++
	}
	if current == nil || len(current.Subcommands) > 0 || current.SkipFlagParsing {
		return args
	}
	var options, rest []string
	for i := at; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			rest = append(rest, arg)
			continue
		}
		name, _, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case joined:
		case name == "watch":
			pace := watchPace.String()
			if i+1 < len(args) {
				if _, err := time.ParseDuration(args[i+1]); err == nil {
					pace = args[i+1]
					i++
				}
			}
			arg += "=" + pace
		case takesValue(current, name) && i+1 < len(args):
			arg += "=" + args[i+1] // joined, so that a value may begin with a dash
			i++
		}
		options = append(options, arg)
	}
	if len(rest) > 0 {
		options = append(append(options, "--"), rest...)
	}
	return append(slices.Clone(args[:at]), options...)
}

func takesValue(c *cli.Command, name string) bool {
	for _, f := range c.Flags {
		if slices.Contains(f.Names(), name) {
			_, isSwitch := f.(*cli.BoolFlag)
			return !isSwitch
		}
	}
	return false
}

// Repeated is an option that may be given more than once. A comma is part of the value, as in cleanup.policy=compact,delete.
type Repeated []string

// Set adds a value.
func (r *Repeated) Set(value string) error {
	*r = append(*r, value)
	return nil
}

func (r *Repeated) String() string { return strings.Join(*r, " ") }

func many(name, usage string) cli.Flag {
	return &cli.GenericFlag{Name: name, Usage: usage, Value: &Repeated{}}
}

// byFlag is --by, which says what a row is about; kind reads it.
func byFlag(kinds []string, usual string) cli.Flag {
	return &cli.StringFlag{Name: "by", Value: usual, Usage: "what a row is: " + strings.Join(kinds, ", ")}
}

func (c *call) kind(kinds []string) (string, error) {
	by := c.String("by")
	if !slices.Contains(kinds, by) {
		return "", wrongUsage("--by %s is none of %s", by, strings.Join(kinds, ", "))
	}
	return by, nil
}

// topFlag is --top; topRows leaves as many rows as it says.
func topFlag() cli.Flag {
	return &cli.IntFlag{Name: "top", Usage: "only so many rows (default: all)"}
}

func topRows[R any](c *call, rows []R) []R {
	if n := c.Int("top"); n > 0 {
		return rows[:min(n, len(rows))]
	}
	return rows
}
