// Package subcommands parses arguments by the rules of those of Kafka's tools that have sub-commands, or options in the manner of getopt:
//
//   - --name value, --name=value and, where there is a short form, -n value;
//   - long names may be abbreviated as long as they stay unique;
//   - what is not known, or missing, is an error that comes with the usage line;
//   - -h and --help print the help on standard output and, strangely, end with exit code 1.
package subcommands

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Argument declares an option. Value names its value in texts; an empty one makes it a switch.
type Argument struct {
	Name, Short string
	Value       string
	Required    bool
	Many        bool // takes all words up to the next option
	Default     string
	Doc         string
}

// Command declares a tool, or one of its sub-commands. It has sub-commands or arguments.
type Command struct {
	Name, Doc string
	Commands  []Command
	Arguments []Argument
	OneOf     [][]string // groups of arguments of which exactly one has to be given
}

// Call is what was given.
type Call struct {
	Command string // the sub-command
	values  map[string][]string
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

// Has tells whether an argument was given, or has a default.
func (c *Call) Has(name string) bool { _, ok := c.values[name]; return ok }

// UsageError is a wrong call.
type UsageError struct{ Usage, Program, Reason string }

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
	default:
		fmt.Fprintln(stderr, err)
	}
	return 1
}

// Parse reads arguments.
func (c Command) Parse(args []string) (*Call, error) {
	if len(c.Commands) == 0 {
		return c.parseArguments(c.Name, "", args)
	}
	if len(args) == 0 {
		return nil, c.wrong(c.Name, "too few arguments")
	}
	word := args[0]
	if word == "-h" || word == "--help" {
		return nil, &HelpError{c.help(c.Name)}
	}
	for _, sub := range c.Commands {
		if sub.Name == word {
			return sub.parseArguments(c.Name+" "+sub.Name, sub.Name, args[1:])
		}
	}
	if strings.HasPrefix(word, "-") {
		return nil, c.wrong(c.Name, "unrecognized arguments: '"+word+"'")
	}
	return nil, c.wrong(c.Name, fmt.Sprintf("invalid choice: '%s' (choose from %s)", word, c.choices("'", ", ")))
}

func (c Command) wrong(program, reason string) error {
	return &UsageError{c.usage(program), strings.Fields(program)[0], reason}
}

func (c Command) parseArguments(program, name string, args []string) (*Call, error) {
	call := &Call{name, map[string][]string{}}
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "-h" || word == "--help" {
			return nil, &HelpError{c.help(program)}
		}
		a, value, inline, err := c.find(program, word)
		if err != nil {
			return nil, err
		}
		switch {
		case a.Value == "" && inline:
			return nil, c.wrong(program, fmt.Sprintf("argument --%s: ignored implicit argument '%s'", a.Name, value))
		case a.Value == "":
			call.values[a.Name] = []string{"true"}
		case inline:
			call.values[a.Name] = append(call.values[a.Name], value)
		case i+1 >= len(args) || c.isOption(args[i+1]):
			return nil, c.wrong(program, fmt.Sprintf("argument --%s: expected %s", a.Name, map[bool]string{true: "at least one argument", false: "one argument"}[a.Many]))
		default:
			i++
			call.values[a.Name] = append(call.values[a.Name], args[i])
			for a.Many && i+1 < len(args) && !c.isOption(args[i+1]) {
				i++
				call.values[a.Name] = append(call.values[a.Name], args[i])
			}
		}
	}
	return call, c.complete(program, call)
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
		return a, "", false, c.wrong(program, fmt.Sprintf("unrecognized arguments: '%s'", word))
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
			return c.wrong(program, fmt.Sprintf("argument --%s is required", a.Name))
		}
	}
	for _, group := range c.OneOf {
		given := 0
		for _, name := range group {
			if call.Has(name) {
				given++
			}
		}
		dashed := "--" + strings.Join(group, " --")
		switch {
		case given == 0:
			return c.wrong(program, "one of the arguments "+dashed+" is required")
		case given > 1:
			return c.wrong(program, "not allowed together: "+dashed)
		}
	}
	for _, a := range c.Arguments {
		if a.Default != "" && !call.Has(a.Name) {
			call.values[a.Name] = []string{a.Default}
		}
	}
	return nil
}

func (c Command) choices(quote, separator string) string {
	names := make([]string, len(c.Commands))
	for i, sub := range c.Commands {
		names[i] = quote + sub.Name + quote
	}
	return strings.Join(names, separator)
}

const helpWidth = 76

func (c Command) usage(program string) string {
	first := "usage: " + program + " "
	words := []string{"[-h]"}
	if len(c.Commands) > 0 {
		words = append(words, "{"+c.choices("", ",")+"}", "...")
	}
	for _, a := range c.Arguments {
		word := "--" + a.Name
		if a.Value != "" {
			word += " " + a.Value
		}
		if !a.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	var out strings.Builder
	line := first
	for i, word := range words {
		if i > 0 && len(line)+len(word) > helpWidth {
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
		fmt.Fprintf(&out, "\npositional arguments:\n  {%s}\n", c.choices("", ","))
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
