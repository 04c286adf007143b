package zkstate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Kafka writes its nodes with Jackson and no order of its own: keys come out as the maps of Scala and Java iterate.
// Nobody may depend on that, yet people diff trees and some scripts cut strings, so the encoders of this package
// produce the same bytes. They write field by field with jsonWriter; maps with free keys go through javaorder.go.

// jsonWriter appends compact JSON. A key or element takes the comma it needs by itself.
type jsonWriter struct {
	buf   []byte
	comma bool
}

func (w *jsonWriter) separate() {
	if w.comma {
		w.buf = append(w.buf, ',')
	}
	w.comma = true
}

func (w *jsonWriter) open(b byte)  { w.separate(); w.buf = append(w.buf, b); w.comma = false }
func (w *jsonWriter) close(b byte) { w.buf = append(w.buf, b); w.comma = true }

func (w *jsonWriter) key(k string) {
	w.separate()
	w.buf = append(appendJSONString(w.buf, k), ':')
	w.comma = false
}

func (w *jsonWriter) str(s string) { w.separate(); w.buf = appendJSONString(w.buf, s) }
func (w *jsonWriter) int(n int64)  { w.separate(); w.buf = strconv.AppendInt(w.buf, n, 10) }
func (w *jsonWriter) null()        { w.separate(); w.buf = append(w.buf, "null"...) }

func (w *jsonWriter) ints(ns []int32) {
	w.open('[')
	for _, n := range ns {
		w.int(int64(n))
	}
	w.close(']')
}

func (w *jsonWriter) strs(ss []string) {
	w.open('[')
	for _, s := range ss {
		w.str(s)
	}
	w.close(']')
}

// appendJSONString escapes what Jackson escapes and nothing else: encoding/json would also escape <, > and &, which
// stand in the names of default entities.
func appendJSONString(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
				dst = fmt.Appendf(dst, `\u%04X\u%04X`, hi, lo) // Jackson escapes what needs two UTF-16 units
			} else {
				dst = utf8.AppendRune(dst, r) // invalid UTF-8 becomes U+FFFD: a node is always valid JSON
			}
			i += size
			continue
		}
		i++
	}
	return append(dst, '"')
}

// jsonObject reads a node field by field: unknown fields do not matter, names are exact, and the first field that is
// missing or of another shape is kept as the error.
type jsonObject struct {
	what   string
	fields map[string]json.RawMessage
	err    error
}

// MalformedError says which kind of node could not be understood, and why.
type MalformedError struct {
	What string // "topic", "broker registration", ...
	Err  error
}

func (e *MalformedError) Error() string { return "malformed " + e.What + ": " + e.Err.Error() }
func (e *MalformedError) Unwrap() error { return e.Err }

var errNoData = errors.New("the node has no data")

func parseObject(what string, data []byte) *jsonObject {
	o := &jsonObject{what: what}
	switch {
	case len(data) == 0:
		o.err = errNoData
	default:
		o.err = json.Unmarshal(data, &o.fields)
		if o.err == nil && o.fields == nil {
			o.err = errors.New("not an object")
		}
	}
	return o
}

func (o *jsonObject) fail(name string, err error) {
	if o.err == nil {
		o.err = fmt.Errorf("%s: %w", name, err)
	}
}

// wrapped is the error of everything read so far.
func (o *jsonObject) wrapped() error {
	if o.err == nil {
		return nil
	}
	return &MalformedError{What: o.what, Err: o.err}
}

// has tells whether the field is there and not null.
func (o *jsonObject) has(name string) bool {
	raw, ok := o.fields[name]
	return ok && !bytes.Equal(raw, []byte("null"))
}

var errMissing = errors.New("missing")

func (o *jsonObject) into(name string, dst any) {
	if o.err != nil {
		return
	}
	if !o.has(name) {
		o.fail(name, errMissing)
		return
	}
	if err := json.Unmarshal(o.fields[name], dst); err != nil {
		o.fail(name, err)
	}
}

func (o *jsonObject) int32(name string) (n int32)      { o.into(name, &n); return n }
func (o *jsonObject) str(name string) (s string)       { o.into(name, &s); return s }
func (o *jsonObject) int32s(name string) (ns []int32)  { o.into(name, &ns); return ns }
func (o *jsonObject) strs(name string) (ss []string)   { o.into(name, &ss); return ss }
func (o *jsonObject) array(name string) (as []rawJSON) { o.into(name, &as); return as }

type rawJSON = json.RawMessage

func (o *jsonObject) int32Or(name string, otherwise int32) int32 {
	if o.err != nil || !o.has(name) {
		return otherwise
	}
	return o.int32(name)
}

// number reads a number that Kafka writes as a string and other writers as a number.
func (o *jsonObject) number(name string) (n int64) {
	if o.err != nil || !o.has(name) {
		o.fail(name, errMissing)
		return 0
	}
	raw := o.fields[name]
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			o.fail(name, err)
			return 0
		}
		raw = []byte(s)
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		o.fail(name, err)
	}
	return n
}

func (o *jsonObject) numberOr(name string, otherwise int64) int64 {
	if o.err != nil || !o.has(name) {
		return otherwise
	}
	return o.number(name)
}

// child reads a field that is an object; a missing one is empty.
func (o *jsonObject) child(name string) *jsonObject {
	c := &jsonObject{what: o.what}
	if o.err == nil && o.has(name) {
		o.into(name, &c.fields)
	}
	return c
}
