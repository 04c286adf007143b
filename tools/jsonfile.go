package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"unicode"
)

// Files that people write by hand, as JSON, are read strictly: what has the wrong type is refused with a line that names the place, since what a tool lets through is what a controller
// has to live with. Fields that are not known are passed over.

// jsonValue is a value in such a file, and where it stands.
type jsonValue struct {
	place string // such as partitions[2].replicas; "" for the whole
	value any
}

const (
	maxJSONFile = 256 << 20
	shownSource = 500 // bytes of a faulty file that its error quotes
)

// readJSONFile reads a whole file as one JSON object.
func readJSONFile(path string) (jsonValue, error) {
	f, err := os.Open(path)
	if err != nil {
		return jsonValue{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJSONFile+1))
	switch {
	case err != nil:
		return jsonValue{}, err
	case len(data) > maxJSONFile:
		return jsonValue{}, &operationFailed{fmt.Sprintf("%s is larger than %d bytes", path, maxJSONFile)}
	}
	return parseJSON(data)
}

func parseJSON(data []byte) (jsonValue, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return jsonValue{}, &operationFailed{"The input string is not a valid JSON: it is empty"}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return jsonValue{}, jsonFault(data, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return jsonValue{}, &operationFailed{fmt.Sprintf("The input string is not a valid JSON: more follows after its end at line %d, column %d", lineOf(data, d.InputOffset()), columnOf(data, d.InputOffset()))}
	}
	if _, ok := v.(map[string]any); !ok {
		return jsonValue{}, &operationFailed{"Expected a JSON object, but it is " + kindOf(v)}
	}
	return jsonValue{"", v}, nil
}

// jsonFault words a syntax error. A word that is none of JSON's gets the text that the originals print.
func jsonFault(data []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return &operationFailed{"The input string is not a valid JSON: it ends too early"}
	}
	at := max(syntax.Offset-1, 0)
	start := at
	for start > 0 && wordByte(data[start-1]) {
		start--
	}
	end := start
	for end < int64(len(data)) && wordByte(data[end]) {
		end++
	}
	if start < end && unicode.IsLetter(rune(data[start])) {
		source := fmt.Sprintf("(String)\"%s\"", data)
		if compat39() {
			source = "REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)"
		} else if len(data) > shownSource {
			source = fmt.Sprintf("(String)\"%s\"[truncated %d chars]", data[:shownSource], len(data)-shownSource)
		}
		return &operationFailed{fmt.Sprintf("Unrecognized token '%s': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')\n at [Source: %s; line: %d, column: %d]",
			data[start:end], source, lineOf(data, end), columnOf(data, end))}
	}
	return &operationFailed{fmt.Sprintf("The input string is not a valid JSON: %s at line %d, column %d", syntax, lineOf(data, at), columnOf(data, at))}
}

func wordByte(b byte) bool {
	return b == '_' || b == '$' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

func lineOf(data []byte, offset int64) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }

func columnOf(data []byte, offset int64) int64 {
	return offset - int64(bytes.LastIndexByte(data[:offset], '\n'))
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("the text %q", shortened(v))
	default:
		return fmt.Sprint(v)
	}
}

func shortened(text string) string {
	const enough = 40
	if len(text) > enough {
		return strings.ToValidUTF8(text[:enough], "") + "..."
	}
	return text
}

func (j jsonValue) wrong(expected string) error {
	return &operationFailed{fmt.Sprintf("Expected %s at %s, but it is %s", expected, j.place, kindOf(j.value))}
}

// field is a field of an object; there tells whether it exists.
func (j jsonValue) field(name string) (v jsonValue, there bool, err error) {
	object, ok := j.value.(map[string]any)
	if !ok {
		return v, false, j.wrong("an object")
	}
	v.value, there = object[name]
	if v.place = name; j.place != "" {
		v.place = j.place + "." + name
	}
	return v, there, nil
}

// need is a field that has to be there.
func (j jsonValue) need(name string) (jsonValue, error) {
	v, there, err := j.field(name)
	if err == nil && !there {
		err = &operationFailed{fmt.Sprintf("No such field exists: `%s` at %s", name, j.place)}
	}
	return v, err
}

func (j jsonValue) list() ([]jsonValue, error) {
	array, ok := j.value.([]any)
	if !ok {
		return nil, j.wrong("a list")
	}
	out := make([]jsonValue, len(array))
	for i, v := range array {
		out[i] = jsonValue{fmt.Sprintf("%s[%d]", j.place, i), v}
	}
	return out, nil
}

func (j jsonValue) text() (string, error) {
	s, ok := j.value.(string)
	if !ok {
		return "", j.wrong("a text")
	}
	return s, nil
}

func (j jsonValue) integer(low, high int64) (int64, error) {
	n, ok := j.value.(json.Number)
	if !ok {
		return 0, j.wrong("a whole number")
	}
	i, err := n.Int64()
	if err != nil || i < low || i > high {
		return 0, j.wrong(fmt.Sprintf("a whole number from %d to %d", low, high))
	}
	return i, nil
}

// id is a partition's number or a broker's.
func (j jsonValue) id() (int32, error) {
	n, err := j.integer(0, math.MaxInt32)
	return int32(n), err
}

// plainJSON writes plain data as one line, without the escapes that only pages need.
func plainJSON(v any) []byte {
	var out bytes.Buffer
	w := json.NewEncoder(&out)
	w.SetEscapeHTML(false)
	_ = w.Encode(v) // plain data
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
