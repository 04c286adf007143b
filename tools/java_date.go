package tools

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// javaDateFormat turns a pattern of java.text.SimpleDateFormat into what formats a time so, in this machine's zone. Eras and weeks of years are not known.
func javaDateFormat(pattern string) (func(time.Time) string, error) {
	var parts []func(time.Time) string
	for rest := []rune(pattern); len(rest) > 0; {
		c := rest[0]
		n := 1
		switch {
		case c == '\'':
			text, length, err := quoted(rest)
			if err != nil {
				return nil, err
			}
			parts, n = append(parts, constant(text)), length
		case c < unicode.MaxASCII && unicode.IsLetter(c):
			for n < len(rest) && rest[n] == c {
				n++
			}
			field := dateFields[c]
			if field == nil {
				return nil, &badArgument{fmt.Sprintf("Illegal pattern character '%c'", c)}
			}
			width := n
			parts = append(parts, func(t time.Time) string { return field(t, width) })
		default:
			parts = append(parts, constant(string(c)))
		}
		rest = rest[n:]
	}
	return func(t time.Time) string {
		var out strings.Builder
		for _, part := range parts {
			out.WriteString(part(t))
		}
		return out.String()
	}, nil
}

func constant(text string) func(time.Time) string { return func(time.Time) string { return text } }

// quoted reads 'text', in which two quotes are one; outside of a text, too.
func quoted(from []rune) (text string, length int, err error) {
	if len(from) > 1 && from[1] == '\'' {
		return "'", 2, nil
	}
	var out strings.Builder
	for i := 1; i < len(from); i++ {
		if from[i] != '\'' {
			out.WriteRune(from[i])
			continue
		}
		if i+1 < len(from) && from[i+1] == '\'' {
			out.WriteRune('\'')
			i++
			continue
		}
		return out.String(), i + 1, nil
	}
	return "", 0, &badArgument{"Unterminated quote"}
}

// dateFields are the letters of a pattern; how often one stands there is the least width of a number, and from three on (four for whole names) asks for words.
var dateFields = map[rune]func(t time.Time, width int) string{
	'y': func(t time.Time, width int) string {
		if width == 2 {
			return padded(t.Year()%100, width)
		}
		return padded(t.Year(), width)
	},
	'M': func(t time.Time, width int) string {
		if width >= 3 {
			return word(t.Month().String(), width)
		}
		return padded(int(t.Month()), width)
	},
	'd': func(t time.Time, width int) string { return padded(t.Day(), width) },
	'D': func(t time.Time, width int) string { return padded(t.YearDay(), width) },
	'E': func(t time.Time, width int) string { return word(t.Weekday().String(), width) },
	'u': func(t time.Time, width int) string { return padded((int(t.Weekday())+6)%7+1, width) },
	'a': func(t time.Time, _ int) string { return t.Format("PM") },
	'H': func(t time.Time, width int) string { return padded(t.Hour(), width) },
	'k': func(t time.Time, width int) string { return padded((t.Hour()+23)%24+1, width) },
	'K': func(t time.Time, width int) string { return padded(t.Hour()%12, width) },
	'h': func(t time.Time, width int) string { return padded((t.Hour()+11)%12+1, width) },
	'm': func(t time.Time, width int) string { return padded(t.Minute(), width) },
	's': func(t time.Time, width int) string { return padded(t.Second(), width) },
	'S': func(t time.Time, width int) string {
		return padded(int(t.UnixMilli()%time.Second.Milliseconds()), width)
	},
	'z': func(t time.Time, _ int) string { return t.Format("MST") },
	'Z': func(t time.Time, _ int) string { return t.Format("-0700") },
	'X': func(t time.Time, width int) string {
		return t.Format([]string{"Z07", "Z0700", "Z07:00"}[min(width, 3)-1])
	},
}

func padded(n, width int) string { return fmt.Sprintf("%0*d", width, n) }

func word(name string, width int) string {
	const short = 3
	if width > short {
		return name
	}
	return name[:short]
}
