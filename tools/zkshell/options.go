package zkshell

import (
	"strconv"
	"strings"
)

// parsed is a command's words after its options were taken out; args[0] is the command.
type parsed struct {
	args   []string
	values map[byte]string // by option letter; flags have an empty value
}

func (p parsed) has(letter byte) bool {
	_, ok := p.values[letter]
	return ok
}

// version reads the value of -v, -1 without one.
func (p parsed) version() (int32, error) {
	v, ok := p.values['v']
	if !ok {
		return -1, nil
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		return 0, failf("java.lang.NumberFormatException: For input string: %q", v)
	}
	return int32(n), nil
}

// parse takes single-letter options from anywhere among the words. spec lists the letters, those with a value followed by a colon.
// Letters may stand together ("-sw"), a value may be glued to its letter ("-v7"), "--" ends the options.
func parse(words []string, spec string) (parsed, error) {
	p := parsed{args: words[:1], values: map[byte]string{}}
	rest := words[1:]
	for len(rest) > 0 {
		w := rest[0]
		rest = rest[1:]
		if w == "--" {
			p.args = append(p.args[:len(p.args):len(p.args)], rest...)
			break
		}
		if !strings.HasPrefix(w, "-") || w == "-" {
			p.args = append(p.args[:len(p.args):len(p.args)], w)
			continue
		}
		for i := 1; i < len(w); i++ {
			at := strings.IndexByte(spec, w[i])
			if at < 0 || w[i] == ':' {
				return p, failf("org.apache.commons.cli.UnrecognizedOptionException: Unrecognized option: %s", w)
			}
			if at+1 == len(spec) || spec[at+1] != ':' {
				p.values[w[i]] = ""
				continue
			}
			switch {
			case i+1 < len(w):
				p.values[w[i]] = w[i+1:]
			case len(rest) > 0 && (!strings.HasPrefix(rest[0], "-") || isNumber(rest[0])):
				p.values[w[i]], rest = rest[0], rest[1:]
			default:
				return p, failf("org.apache.commons.cli.MissingArgumentException: Missing argument for option: %c", w[i])
			}
			break
		}
	}
	return p, nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}
