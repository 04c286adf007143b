package dumplog

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// object writes a JSON object in one line whose fields keep the order they are added in, as Jackson does in the
// original: encoding/json would sort them, or need a type for each version of each record.
type object struct{ strings.Builder }

func (o *object) raw(name, value string) *object {
	o.WriteByte(map[bool]byte{true: '{', false: ','}[o.Len() == 0])
	o.WriteString(quote(name))
	o.WriteByte(':')
	o.WriteString(value)
	return o
}

func (o *object) text(name, value string) *object { return o.raw(name, quote(value)) }

func (o *object) number(name string, value int64) *object {
	return o.raw(name, strconv.FormatInt(value, 10))
}

func (o *object) maybe(name string, value *string) *object {
	if value == nil {
		return o.raw(name, "null")
	}
	return o.text(name, *value)
}

// bytes are base64; nil is null.
func (o *object) bytes(name string, value []byte) *object {
	if value == nil {
		return o.raw(name, "null")
	}
	return o.text(name, base64.StdEncoding.EncodeToString(value))
}

func (o *object) end() string {
	if o.Len() == 0 {
		return "{}"
	}
	return o.Builder.String() + "}"
}

// array writes a JSON array of what item gives for each element.
func array[T any](list []T, item func(*T) string) string {
	parts := make([]string, len(list))
	for i := range list {
		parts[i] = item(&list[i])
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\b':
			b.WriteString(`\b`)
		case '\t':
			b.WriteString(`\t`)
		case '\n':
			b.WriteString(`\n`)
		case '\f':
			b.WriteString(`\f`)
		case '\r':
			b.WriteString(`\r`)
		default:
			if r < ' ' {
				fmt.Fprintf(&b, `\u%04X`, r)
			} else {
				b.WriteRune(r)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}
