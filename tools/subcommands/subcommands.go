// Package subcommands parses arguments by the rules of those of Kafka's tools that have sub-commands, or options in the manner of getopt:
//
//   - --name value, --name=value and, where there is a short form, -n value;
//   - long names may be abbreviated as long as they stay unique;
//   - what is not known, or missing, is an error that comes with the usage line;
//   - the arguments of the tool come before the sub-command, those of the sub-command after it;
//   - -h and --help print the help on standard output and, strangely, end with exit code 1.
package subcommands

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"barnabas/tools/spelling"
)

// Argument declares an option. Value names its value in texts; an empty one makes it a switch.
type Argument struct {
	Name, Short string
	Value       string
	Number      Number
	Required    bool
	Many        bool // takes all words up to the next option
	Alone       bool // a switch that asks for something else than the command: no more is read, and nothing is missing
	Default     string
	Doc         string
}

// word is the argument as usage lines show it.
func (a Argument) word() string {
	if a.Value == "" {
		return "--" + a.Name
	}
	return "--" + a.Name + " " + a.Value
}

// spelled is the argument as errors name it: in both forms where there are two.
func (a Argument) spelled() string {
	if a.Short == "" {
		return "--" + a.Name
	}
	return "--" + a.Name + "/-" + a.Short
}

// Number is the kind of number that a value has to be, by its size in bits; 0 is any text.
type Number int

// The numbers have the names of Java's types in errors.
const (
	Short   Number = 16
	Integer Number = 32
	Long    Number = 64
)

func (n Number) String() string {
	return map[Number]string{Short: "Short", Integer: "Integer", Long: "Long"}[n]
}

// Command declares a tool, or one of its sub-commands. Where it has both arguments and sub-commands, its arguments come first.
type Command struct {
	Name, Doc string
	Commands  []Command
	Word      string // stands for the sub-commands in the usage line, in place of all their names
	Arguments []Argument
	OneOf     [][]string // groups of arguments of which exactly one has to be given
}

// Call is what was given.
type Call struct {
	Command string // the sub-command
	values  map[string][]string
	order   []string
}

// Value is the value of an argument, or its default.
func (c *Call) Value(name string) string {
	if v := c.values[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// Values are all values of an argument that takes many.
func (c *Call) Values(name string) []string { return c.values[name] }

// Int is the value of an argument that is a number, 0 where there is none.
func (c *Call) Int(name string) int64 {
	n, _ := strconv.ParseInt(c.Value(name), 10, 64) // it was read as a number before
	return n
}

// Has tells whether an argument was given, or has a default.
func (c *Call) Has(name string) bool { _, ok := c.values[name]; return ok }

// UsageError is a wrong call. Meant are words that may have been meant by one that is not known.
type UsageError struct {
	Usage, Program, Reason string
	Meant                  []string
}

func (e *UsageError) Error() string { return e.Reason }

// HelpError asks for the help text.
type HelpError struct{ Text string }

func (e *HelpError) Error() string { return "help was asked for" }

// Report prints why a call was not parsed, where the originals print it, and returns the exit code.
func Report(err error, stdout, stderr io.Writer) int {
	var help *HelpError
	var usage *UsageError
	switch {
	case errors.As(err, &help):
		fmt.Fprint(stdout, help.Text)
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "%s%s: error: %s\n", usage.Usage, usage.Program, usage.Reason)
		if usage.Meant != nil {
			fmt.Fprintf(stderr, "\nDid you mean:\n\t%s\n", strings.Join(usage.Meant, "\n\t"))
		}
	default:
		fmt.Fprintln(stderr, err)
	}
	return 1
}

// Parse reads arguments.
func (c Command) Parse(args []string) (*Call, error) {
	call := &Call{values: map[string][]string{}}
	return call, c.parse(c.Name, call, args)
}

// parse reads the arguments of a command and, from their name on, those of its sub-command: what is wrong with these is found first.
func (c Command) parse(program string, call *Call, args []string) error {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if len(c.Commands) > 0 && !strings.HasPrefix(word, "-") {
			if err := c.parseCommand(program, word, call, args[i+1:]); err != nil {
				return err
			}
			return c.complete(program, call)
		}
		if word == "-h" || word == "--help" {
			return &HelpError{c.help(program)}
		}
		taken, alone, err := c.parseArgument(program, call, args[i:])
		if err != nil || alone {
			return err
		}
		i += taken
	}
	if len(c.Commands) > 0 {
		return c.wrong(program, "too few arguments")
	}
	return c.complete(program, call)
}

func (c Command) parseCommand(program, name string, call *Call, args []string) error {
	at := slices.IndexFunc(c.Commands, func(sub Command) bool { return sub.Name == name })
	if at < 0 {
		return c.unknown(program, fmt.Sprintf("invalid choice: '%s' (choose from %s)", name, c.choices("'", ", ")), name, c.commandNames())
	}
	for _, a := range c.Arguments {
		if a.Required {
			program += " " + a.word()
		}
	}
	for _, group := range c.OneOf {
		program += " " + strings.Join(c.alternatives(group), " ")
	}
	call.Command = name
	return c.Commands[at].parse(program+" "+name, call, args)
}

func (c Command) wrong(program, reason string) error {
	return &UsageError{Usage: c.usage(program), Program: strings.Fields(program)[0], Reason: reason}
}

// unknown reports a word that is not one of some.
func (c Command) unknown(program, reason, word string, known []string) error {
	return &UsageError{c.usage(program), strings.Fields(program)[0], reason, spelling.Closest(word, known)}
}

func (c Command) argumentNames() []string {
	names := make([]string, len(c.Arguments))
	for i, a := range c.Arguments {
		names[i] = "--" + a.Name
	}
	return names
}

// parseArgument reads the argument that a word begins and tells how many of the words after it were its values.
func (c Command) parseArgument(program string, call *Call, args []string) (taken int, alone bool, err error) {
	a, value, inline, err := c.find(program, args[0])
	if err != nil {
		return 0, false, err
	}
	call.order = append(call.order, a.Name)
	var values []string
	switch {
	case a.Value == "" && inline:
		return 0, false, c.wrong(program, fmt.Sprintf("argument %s: ignored implicit argument '%s'", a.spelled(), value))
	case a.Value == "":
		call.values[a.Name] = []string{"true"}
		return 0, a.Alone, nil
	case inline:
		values = []string{value}
	default:
		for taken+1 < len(args) && !c.isOption(args[taken+1]) && (taken == 0 || a.Many) {
			taken++
			values = append(values, args[taken])
		}
	}
	if values == nil {
		return 0, false, c.wrong(program, fmt.Sprintf("argument %s: expected %s", a.spelled(), map[bool]string{true: "at least one argument", false: "one argument"}[a.Many]))
	}
	for _, v := range values {
		if a.Number == 0 {
			break
		}
		if _, err := strconv.ParseInt(v, 10, int(a.Number)); err != nil {
			return 0, false, c.wrong(program, fmt.Sprintf("argument %s: could not convert '%s' to %v (For input string: \"%s\")", a.spelled(), v, a.Number, v))
		}
	}
	call.values[a.Name] = append(call.values[a.Name], values...)
	return taken, false, nil
}

// isOption tells whether a word is one of the options, and not the value of one, such as -1.
func (c Command) isOption(word string) bool {
	if !strings.HasPrefix(word, "-") || word == "-" {
		return false
	}
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	return name == "h" || name == "help" || slices.ContainsFunc(c.Arguments, func(a Argument) bool {
		return a.Short == name || strings.HasPrefix(word, "--") && strings.HasPrefix(a.Name, name)
	})
}

func (c Command) find(program, word string) (a Argument, value string, inline bool, err error) {
	name, value, inline := strings.Cut(strings.TrimLeft(word, "-"), "=")
	var found []Argument
	for _, a := range c.Arguments {
		switch {
		case strings.HasPrefix(word, "--") && a.Name == name, !strings.HasPrefix(word, "--") && strings.HasPrefix(word, "-") && a.Short == name && name != "":
			return a, value, inline, nil
		case strings.HasPrefix(word, "--") && name != "" && strings.HasPrefix(a.Name, name):
			found = append(found, a)
		}
	}
	switch len(found) {
	case 1:
		return found[0], value, inline, nil
	case 0:
		return a, "", false, c.unknown(program, fmt.Sprintf("unrecognized arguments: '%s'", word), word, c.argumentNames())
	}
	names := make([]string, len(found))
	for i, a := range found {
		names[i] = "--" + a.Name
	}
	return a, "", false, c.wrong(program, fmt.Sprintf("ambiguous option: %s could match %s", word, strings.Join(names, ", ")))
}

// complete checks that nothing is missing and fills in defaults.
func (c Command) complete(program string, call *Call) error {
	for _, a := range c.Arguments {
		if a.Required && !call.Has(a.Name) {
			return c.wrong(program, fmt.Sprintf("argument %s is required", a.spelled()))
		}
	}
	for _, group := range c.OneOf {
		var given []string
		for _, name := range call.order {
			if slices.Contains(group, name) && !slices.Contains(given, name) {
				given = append(given, name)
			}
		}
		switch {
		case given == nil:
			return c.wrong(program, "one of the arguments "+c.spelled(group)+" is required")
		case len(given) > 1:
			return c.wrong(program, fmt.Sprintf("argument --%s: not allowed with argument --%s", given[1], given[0]))
		}
	}
	for _, a := range c.Arguments {
		if a.Default != "" && !call.Has(a.Name) {
			call.values[a.Name] = []string{a.Default}
		}
	}
	return nil
}

// alternatives shows arguments of which one has to be given, in pieces between which a line may end.
func (c Command) alternatives(names []string) []string {
	var words []string
	for _, a := range c.Arguments {
		if slices.Contains(names, a.Name) {
			words = append(words, a.word(), "|")
		}
	}
	last := len(words) - 2
	words[0], words[last] = "("+words[0], words[last]+")"
	return words[:last+1]
}

// spelled lists arguments as they are written, in both forms where there are two.
func (c Command) spelled(names []string) string {
	var words []string
	for _, a := range c.Arguments {
		if !slices.Contains(names, a.Name) {
			continue
		}
		words = append(words, a.spelled())
	}
	return strings.Join(words, " ")
}

// word stands for the sub-commands in texts.
func (c Command) word() string {
	if c.Word != "" {
		return c.Word
	}
	return "{" + c.choices("", ",") + "}"
}

// IsCommand tells whether a word is the name of one of the sub-commands.
func (c Command) IsCommand(word string) bool { return slices.Contains(c.commandNames(), word) }

func (c Command) commandNames() []string {
	names := make([]string, len(c.Commands))
	for i, sub := range c.Commands {
		names[i] = sub.Name
	}
	return names
}

func (c Command) choices(quote, separator string) string {
	return quote + strings.Join(c.commandNames(), quote+separator+quote) + quote
}

const helpWidth = 76

func (c Command) usage(program string) string {
	words := append(strings.Fields(program), "[-h]")
	first := "usage: " + words[0] + " "
	for _, a := range c.Arguments {
		switch {
		case slices.ContainsFunc(c.OneOf, func(group []string) bool { return slices.Contains(group, a.Name) }):
		case a.Required:
			words = append(words, a.word())
		default:
			words = append(words, "["+a.word()+"]")
		}
	}
	for _, group := range c.OneOf {
		words = append(words, c.alternatives(group)...)
	}
	if len(c.Commands) > 0 {
		words = append(words, c.word(), "...")
	}
	var out strings.Builder
	line := first
	for _, word := range words[1:] {
		if line != first && len(line)+len(word) > helpWidth {
			out.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", len(first))
		}
		line += word + " "
	}
	out.WriteString(strings.TrimRight(line, " ") + "\n")
	return out.String()
}

func (c Command) help(program string) string {
	var out strings.Builder
	out.WriteString(c.usage(program))
	if c.Doc != "" {
		out.WriteString("\n" + c.Doc + "\n")
	}
	if len(c.Commands) > 0 {
		fmt.Fprintf(&out, "\npositional arguments:\n  %s\n", c.word())
		for _, sub := range c.Commands {
			describe(&out, "  "+sub.Name, sub.Doc)
		}
	}
	out.WriteString("\noptional arguments:\n")
	describe(&out, "-h, --help", "show this help message and exit")
	for _, a := range c.Arguments {
		head := "--" + a.Name
		if a.Value != "" {
			head += " " + a.Value
		}
		if a.Short != "" {
			head += ", -" + a.Short
			if a.Value != "" {
				head += " " + a.Value
			}
		}
		doc := a.Doc
		if a.Default != "" {
			doc += " (default: " + a.Default + ")"
		}
		describe(&out, head, doc)
	}
	return out.String()
}

// describe writes a name and, from the 25th column on, what it is.
func describe(out *strings.Builder, name, doc string) {
	const column = 25
	line := "  " + name
	if len(line) > column-2 {
		out.WriteString(line + "\n")
		line = ""
	}
	line += strings.Repeat(" ", column-len(line))
	empty := true
	for _, word := range strings.Fields(doc) {
		if !empty && len(line)+1+len(word) > helpWidth {
			out.WriteString(line + "\n")
			line, empty = strings.Repeat(" ", column), true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	out.WriteString(strings.TrimRight(line, " ") + "\n")
}
