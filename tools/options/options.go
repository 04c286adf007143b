// Package options parses arguments by the rules of Kafka's own tools, on which scripts rely:
//
//   - --name value, --name=value and, with one dash, -name value are the same;
//   - names are not abbreviated; what is not an option is ignored, except for the argument of an option that needs one, which is taken whatever it looks like;
//   - an option that takes one value fails when it is given twice, but only where its value is asked for.
package options

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"

	"barnabas/tools/spelling"
)

// Arity says how many values an option takes.
type Arity int8

// An option takes no value, one, one that may be missing, or one each time it is given. What follows an option whose value may be missing
// is its value unless it looks like an option; if the value is a number, only if it is one, and -1 is.
const (
	None Arity = iota
	One
	Maybe
	MaybeNumber
	Many
)

func (a Arity) takes(next string) bool {
	switch a {
	case Maybe:
		return !isOption(next)
	case MaybeNumber:
		_, err := strconv.ParseInt(next, 10, 64)
		return err == nil
	}
	return true
}

// Option declares one option. Value names its value in the help text, as in "String: topic". Without a Required one the rest is not looked at, unless help or the version was asked for.
type Option struct {
	Name     string
	Arity    Arity
	Value    string
	Doc      string
	Required bool
}

// Set holds what was given.
type Set struct {
	values map[string][]string
	order  []string
}

// UnknownError names what is not an option, and the options that may have been meant.
type UnknownError struct {
	Name  string
	Meant []string
}

func (e *UnknownError) Error() string { return e.Name + " is not a recognized option" }

// Parse reads arguments. Its errors have the words that Kafka's tools print.
func Parse(options []Option, args []string) (*Set, error) {
	known := map[string]Option{}
	for _, o := range options {
		known[o.Name] = o
	}
	set := &Set{values: map[string][]string{}}
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			break
		}
		if !isOption(word) {
			continue
		}
		name, value, inline := strings.Cut(strings.TrimLeft(word, "-"), "=")
		o, ok := known[name]
		if !ok {
			return nil, unknown(name, options)
		}
		set.order = append(set.order, name)
		switch {
		case o.Arity == None && inline:
			return nil, fmt.Errorf("Option %s does not take an argument", name)
		case o.Arity == None:
			set.values[name] = append(set.values[name], "")
		case inline:
			set.values[name] = append(set.values[name], value)
		case i+1 < len(args) && o.Arity.takes(args[i+1]):
			i++
			set.values[name] = append(set.values[name], args[i])
		case o.Arity == Maybe, o.Arity == MaybeNumber:
			if set.values[name] == nil {
				set.values[name] = []string{}
			}
		default:
			return nil, fmt.Errorf("Option %s requires an argument", name)
		}
	}
	return set, nil
}

func unknown(name string, options []Option) error {
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = o.Name
	}
	return &UnknownError{name, spelling.Closest(name, names)}
}

func isOption(word string) bool { return len(word) > 1 && word[0] == '-' && word != "--" }

// Has tells whether the option was given.
func (s *Set) Has(name string) bool { _, ok := s.values[name]; return ok }

// Order lists the options in the order in which they were given, one that was given twice twice.
func (s *Set) Order() []string { return s.order }

// Names lists the options that were given, sorted.
func (s *Set) Names() []string {
	var names []string
	for name := range s.values {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Value returns the value of an option, "" when it was not given; more than one is an error.
func (s *Set) Value(name string) (string, error) {
	v := s.values[name]
	if len(v) > 1 {
		return "", fmt.Errorf("Found multiple arguments for option %s, but you asked for only one", name)
	}
	if len(v) == 0 {
		return "", nil
	}
	return v[0], nil
}

// Values returns every value of an option.
func (s *Set) Values(name string) []string { return s.values[name] }

// Int returns the value of an option as a number, or def when it was not given.
func (s *Set) Int(name string, def int64) (int64, error) {
	v, err := s.Value(name)
	if err != nil || !s.Has(name) {
		return def, err
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("Cannot parse argument '%s' of option %s", v, name)
	}
	return n, nil
}

// Lacking lists the required options that were not given.
func (s *Set) Lacking(options []Option) []string {
	var names []string
	for _, o := range options {
		if o.Required && !s.Has(o.Name) {
			names = append(names, o.Name)
		}
	}
	return names
}

const (
	nameWidth = 41
	docWidth  = 39
)

// WriteHelp prints the options in two columns, sorted by name.
func WriteHelp(w io.Writer, options []Option) {
	sorted := append([]Option(nil), options...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].Name < sorted[j].Name })
	heading := "Option"
	if slices.ContainsFunc(options, func(o Option) bool { return o.Required }) {
		heading = "Option (* = required)"
	}
	fmt.Fprintf(w, "%-*s%-*s\n%-*s%-*s\n", nameWidth, heading, docWidth, "Description", nameWidth, strings.Repeat("-", len(heading)), docWidth, "-----------")
	for _, o := range sorted {
		name := "--" + o.Name
		if o.Required {
			name = "* " + name
		}
		switch o.Arity {
		case One, Many:
			name += " <" + o.Value + ">"
		case Maybe, MaybeNumber:
			name += " [" + o.Value + "]"
		}
		left, right := wrap(name, nameWidth-1), wrap(o.Doc, docWidth)
		for i := range max(len(left), len(right)) {
			fmt.Fprintf(w, "%-*s%-*s\n", nameWidth, line(left, i), docWidth, line(right, i))
		}
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// wrap breaks a text at blanks; lines after the first are indented by two.
func wrap(text string, width int) []string {
	var lines []string
	current := ""
	for _, word := range strings.Fields(text) {
		if current != "" && len(current)+1+len(word) > width {
			lines = append(lines, current)
			current = "  " + word
			continue
		}
		if current != "" {
			current += " "
		}
		current += word
	}
	return append(lines, current)
}
