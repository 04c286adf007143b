package native

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// row is a record as a line of JSON, from which the same record can be made again: bytes are text where they are valid UTF-8 and base64 in a field of their own where they are not, and what is null differs from what is empty.
type row struct {
	Topic     string      `json:"topic"`
	Partition int32       `json:"partition"`
	Offset    int64       `json:"offset"`
	Timestamp int64       `json:"timestamp"`      // milliseconds; -1: the record has none
	TimeType  string      `json:"timestamp_type"` // create, append or none
	Headers   []rowHeader `json:"headers"`
	Key       *string     `json:"key"`
	KeyBytes  *string     `json:"key_base64,omitempty"`
	Value     *string     `json:"value"`
	ValBytes  *string     `json:"value_base64,omitempty"`
}

type rowHeader struct {
	Key      *string `json:"key"`
	KeyBytes *string `json:"key_base64,omitempty"`
	Value    *string `json:"value"`
	ValBytes *string `json:"value_base64,omitempty"`
}

// written are bytes as JSON holds them: as a text, or as base64 of what is none.
func written(bytes []byte) (text, coded *string) {
	switch {
	case bytes == nil:
		return nil, nil
	case utf8.Valid(bytes):
		return words("%s", bytes), nil
	}
	code := base64.StdEncoding.EncodeToString(bytes)
	return nil, &code
}

// read is the reverse of written.
func read(text, coded *string) ([]byte, error) {
	switch {
	case text != nil && coded != nil:
		return nil, errors.New("it has both a text and base64 of the same")
	case text != nil:
		return []byte(*text), nil
	case coded != nil:
		bytes, err := base64.StdEncoding.DecodeString(*coded)
		if bytes == nil && err == nil {
			bytes = []byte{}
		}
		return bytes, err
	}
	return nil, nil
}

func rowOf(r *kgo.Record) *row {
	out := newRow(r.Topic, r.Partition, r.Offset, r.Key, r.Value, r.Headers)
	if kind := r.Attrs.TimestampType(); kind >= 0 {
		out.Timestamp = r.Timestamp.UnixMilli()
		if out.TimeType = "create"; kind == 1 {
			out.TimeType = "append"
		}
	}
	return out
}

// newRow is a row without a time.
func newRow(topic string, partition int32, offset int64, key, value []byte, headers []kgo.RecordHeader) *row {
	out := &row{Topic: topic, Partition: partition, Offset: offset, Timestamp: -1, TimeType: "none", Headers: []rowHeader{}}
	out.Key, out.KeyBytes = written(key)
	out.Value, out.ValBytes = written(value)
	for _, h := range headers {
		var to rowHeader
		to.Key, to.KeyBytes = written([]byte(h.Key))
		to.Value, to.ValBytes = written(h.Value)
		out.Headers = append(out.Headers, to)
	}
	return out
}

// record is the record that a row was made of, without its topic and offset, which the cluster gives it.
func (r *row) record() (*kgo.Record, error) {
	out := &kgo.Record{Partition: r.Partition}
	if r.Timestamp >= 0 {
		out.Timestamp = time.UnixMilli(r.Timestamp)
	}
	var err error
	if out.Key, err = read(r.Key, r.KeyBytes); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if out.Value, err = read(r.Value, r.ValBytes); err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	for i, h := range r.Headers {
		key, err := read(h.Key, h.KeyBytes)
		if err == nil && key == nil {
			err = errors.New("it has no key")
		}
		if err != nil {
			return nil, fmt.Errorf("header %d: %w", i, err)
		}
		value, err := read(h.Value, h.ValBytes)
		if err != nil {
			return nil, fmt.Errorf("header %d: %w", i, err)
		}
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: string(key), Value: value})
	}
	return out, nil
}

// parseRow reads a line. A row has to say what the value is, if only that there is none: a deletion does not come of a field that was forgotten.
func parseRow(line []byte) (*row, error) {
	out := &row{Timestamp: -1, Partition: -1}
	if err := json.Unmarshal(line, out); err != nil {
		return nil, err
	}
	if out.Value == nil && out.ValBytes == nil {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(line, &fields); err != nil {
			return nil, err
		}
		if _, said := fields["value"]; !said {
			return nil, errors.New("it has neither value nor value_base64; a deletion has \"value\":null")
		}
	}
	return out, nil
}

// show is a line for people; bytes that are no text are escaped.
func (r *row) show(w io.Writer) {
	at := "-"
	if r.Timestamp >= 0 {
		at = instant(r.Timestamp)
	}
	var headers []string
	for _, h := range r.Headers {
		headers = append(headers, shown(h.Key, h.KeyBytes)+"="+shown(h.Value, h.ValBytes))
	}
	line := fmt.Sprintf("%d:%d  %s  %s  %s", r.Partition, r.Offset, at, shown(r.Key, r.KeyBytes), shown(r.Value, r.ValBytes))
	if headers != nil {
		line += "  [" + strings.Join(headers, " ") + "]"
	}
	fmt.Fprintln(w, line)
}

func shown(text, coded *string) string {
	bytes, err := read(text, coded)
	if err != nil || bytes == nil {
		return "null"
	}
	quoted := strconv.Quote(string(bytes)) // no escape of a terminal's gets through
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// piece writes a part of a format.
type piece func(w io.Writer, r *kgo.Record)

// readFormat reads a format: %t topic, %p partition, %o offset, %T milliseconds, %k key, %v value, %K and %V their lengths (-1 of null), %h headers, %% a percent sign; \n, \t, \0 and \\ as in C.
func readFormat(format string) ([]piece, error) {
	var pieces []piece
	literal := func(text string) {
		pieces = append(pieces, func(w io.Writer, _ *kgo.Record) { _, _ = io.WriteString(w, text) })
	}
	number := func(of func(r *kgo.Record) int64) {
		pieces = append(pieces, func(w io.Writer, r *kgo.Record) { fmt.Fprint(w, of(r)) })
	}
	bytes := func(of func(r *kgo.Record) []byte) {
		pieces = append(pieces, func(w io.Writer, r *kgo.Record) { _, _ = w.Write(of(r)) })
	}
	length := func(b []byte) int64 {
		if b == nil {
			return -1
		}
		return int64(len(b))
	}
	escapes := map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '0': "\x00", '\\': "\\"}
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' && c != '\\' {
			literal(string(format[i : i+1]))
			continue
		}
		if i++; i == len(format) {
			return nil, wrongUsage("-f ends in the middle of %q", c)
		}
		if c == '\\' {
			text, known := escapes[format[i]]
			if !known {
				return nil, wrongUsage(`-f: \%c is none of \n, \t, \r, \0 and \\`, format[i])
			}
			literal(text)
			continue
		}
		switch format[i] {
		case '%':
			literal("%")
		case 't':
			bytes(func(r *kgo.Record) []byte { return []byte(r.Topic) })
		case 'p':
			number(func(r *kgo.Record) int64 { return int64(r.Partition) })
		case 'o':
			number(func(r *kgo.Record) int64 { return r.Offset })
		case 'T':
			number(func(r *kgo.Record) int64 { return rowOf(r).Timestamp })
		case 'k':
			bytes(func(r *kgo.Record) []byte { return r.Key })
		case 'v':
			bytes(func(r *kgo.Record) []byte { return r.Value })
		case 'K':
			number(func(r *kgo.Record) int64 { return length(r.Key) })
		case 'V':
			number(func(r *kgo.Record) int64 { return length(r.Value) })
		case 'h':
			bytes(func(r *kgo.Record) []byte {
				var list []string
				for _, h := range r.Headers {
					list = append(list, h.Key+"="+string(h.Value))
				}
				return []byte(strings.Join(list, ","))
			})
		default:
			return nil, wrongUsage("-f: %%%c is none of %%t, %%p, %%o, %%T, %%k, %%v, %%K, %%V, %%h and %%%%", format[i])
		}
	}
	return pieces, nil
}
