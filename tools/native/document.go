package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// A document is what a command has to say: plain data, whose JSON form is its machine-readable one, and which can show itself to people.
type document interface{ show(w io.Writer) }

// documentVersion is the version of all documents; it grows when a field changes its meaning or goes.
const documentVersion = 1

var formats = []string{"table", "json", "yaml"}

// render writes a document. compact puts JSON into one line, for a stream of documents.
func render(w io.Writer, format string, d document, compact bool) error {
	switch format {
	case "json":
		text, err := asJSON(d, compact)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	case "yaml":
		return asYAML(w, d)
	}
	d.show(w)
	return nil
}

func asJSON(d any, compact bool) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if !compact {
		e.SetIndent("", "  ")
	}
	err := e.Encode(d)
	return out.Bytes(), err
}

// asYAML goes by way of JSON, so that both have the same fields in the same order.
func asYAML(w io.Writer, d any) error {
	text, err := asJSON(d, true)
	if err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return err
	}
	unfold(&node)
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(&node); err != nil {
		return err
	}
	return e.Close()
}

// unfold takes JSON's brackets and quotes off a node; the encoder puts quotes where a text would read as something else.
func unfold(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		unfold(child)
	}
}

// columns writes rows, of which the first is the heading. Names of groups and of clients are what strangers chose: what would move a terminal's cursor, or end a column, is shown as its picture.
func columns(w io.Writer, rows [][]string) {
	const gap = 2
	t := tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, strings.Map(pictured, cell))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // what the writer could not write it cannot say either
}

// pictured is the picture of a control character, and any other as it is.
func pictured(r rune) rune {
	const pictures, deleted = 0x2400, 0x2421
	switch {
	case r < ' ':
		return pictures + r
	case r == 0x7f:
		return deleted
	case r > 0x7f && r < 0xa0:
		return utf8.RuneError
	}
	return r
}

// maybe is a number that may not be known.
func maybe(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func ids(list []int32) string {
	if len(list) == 0 {
		return "-"
	}
	var parts []string
	for _, id := range list {
		parts = append(parts, strconv.Itoa(int(id)))
	}
	return strings.Join(parts, ",")
}

// instant is a time in milliseconds.
func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// count is a number of things.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// known is a number that is not negative, or null.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// listed makes an empty list of none, which JSON would call null.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
