package zkstate

import (
	"fmt"
	"strings"
)

// SanitizeName turns a name of a user, client or address into a node's name: letters, digits, '.', '_' and '-'
// stay, every other byte of its UTF-8 becomes %XX.
func SanitizeName(name string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// DesanitizeName is the inverse of SanitizeName. A '+' is a blank, which some writers of the past used.
func DesanitizeName(name string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch c := name[i]; c {
		case '+':
			b.WriteByte(' ')
		case '%':
			if i+2 >= len(name) {
				return "", fmt.Errorf("%w: %q ends inside a %%-escape", ErrBadArguments, name)
			}
			var v byte
			if _, err := fmt.Sscanf(name[i+1:i+3], "%02x", &v); err != nil {
				return "", fmt.Errorf("%w: %q has a bad %%-escape", ErrBadArguments, name)
			}
			b.WriteByte(v)
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
