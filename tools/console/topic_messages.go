package console

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/admin/cluster"
)

func topicMessagesPage() page {
	return page{path: "/topic/messages", title: "Topic", file: "topic_messages.html", under: "/topics", data: topicMessages, needs: func(who user) bool { return who.records }, download: downloadMessages}
}

// messagesData is the records that a scan found, and what was asked for.
type messagesData struct {
	topicHead
	Partitions []int32
	Asked      messagesQuestion
	Found      *found
	Rows       []recordRow
	Onward     string // the address of what follows; "" where nothing does
	JSON, CSV  string // addresses of downloads
}

// messagesQuestion is the form, as it was filled in.
type messagesQuestion struct {
	Partition, From, Offset, Time, Text, In string
	Most                                    int
}

// recordRow is a record as it is shown: cut, and with nothing in it that a terminal or a page would take for more than text.
type recordRow struct {
	Partition  int32
	Offset     int64
	Time       time.Time
	Kind       string // of what is not an ordinary record
	Key, Value shownBytes
	Headers    []shownHeader
	Producer   string
}

type shownHeader struct {
	Key   string
	Value shownBytes
}

// shownBytes is a key or a value for people.
type shownBytes struct {
	Null   bool
	Text   string
	Binary bool // Text is hexadecimal
	Cut    bool
	Size   int // bytes
}

const (
	shownText    = 4 << 10 // bytes
	shownHex     = 128
	shownHeaders = 50
	defaultRows  = 50
)

func topicMessages(ctx context.Context, c *Console, q question) (any, error) {
	_, t, err := topicOf(ctx, c, q, 2*time.Second)
	if err != nil {
		return nil, err
	}
	d := &messagesData{topicHead: topicHead{t.Name, t.Internal, "messages"}}
	for _, p := range t.Partitions {
		d.Partitions = append(d.Partitions, p.ID)
	}
	s, err := d.read(t, q)
	if err != nil {
		return nil, err
	}
	select {
	case c.scans <- struct{}{}:
		defer func() { <-c.scans }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.Found, err = s.run(ctx, c.Cluster); err != nil {
		return nil, err
	}
	for _, r := range d.Found.records {
		d.Rows = append(d.Rows, recordRowOf(r))
	}
	if d.Found.Next >= 0 {
		on := q.with("from", "offset")
		on.Set("offset", strconv.FormatInt(d.Found.Next, 10))
		d.Onward = q.path + "?" + on.Encode()
	}
	d.JSON, d.CSV = q.address("format", "json"), q.address("format", "csv")
	return d, nil
}

// read makes a scan of the address.
func (d *messagesData) read(t cluster.Topic, q question) (scan, error) {
	s := scan{topic: t, only: -1, from: cmp.Or(q.get("from"), "newest"), text: q.get("text"), in: cmp.Or(q.get("in"), "any"), most: defaultRows, records: scanRecords}
	d.Asked = messagesQuestion{q.get("partition"), s.from, q.get("offset"), q.get("time"), s.text, s.in, s.most}
	if text := d.Asked.Partition; text != "" {
		id, err := strconv.ParseInt(text, 10, 32)
		if err != nil || id < 0 || int(id) >= len(t.Partitions) {
			return s, bad("%s has no partition %s", t.Name, text)
		}
		s.only = int32(id)
	}
	if text := q.get("most"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return s, bad("%q is no number of records", text)
		}
		s.most = min(n, mostRows)
		d.Asked.Most = s.most
	}
	switch s.in {
	case "any", "key", "value", "header":
	default:
		return s, bad("a text can be looked for in any, key, value or header, not in %q", s.in)
	}
	switch s.from {
	case "newest", "oldest":
	case "offset":
		n, err := strconv.ParseInt(d.Asked.Offset, 10, 64)
		if err != nil || n < 0 {
			return s, bad("%q is no offset", d.Asked.Offset)
		}
		s.offset = n
	case "time":
		at, err := parseTime(d.Asked.Time)
		if err != nil {
			return s, err
		}
		s.at = at.UnixMilli()
	default:
		return s, bad("records can be read from newest, oldest, offset or time, not from %q", s.from)
	}
	return s, nil
}

// parseTime reads what a browser's field of date and time gives, in UTC, and what Kafka's tools take.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	at, err := cluster.ParseDateTime(text)
	if err != nil {
		return at, bad("%q is no time such as 2026-01-31T09:00 (UTC)", text)
	}
	return at, nil
}

func recordRowOf(r *kgo.Record) recordRow {
	row := recordRow{Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp.UTC(), Key: shown(r.Key), Value: shown(r.Value)}
	switch {
	case r.Attrs.IsControl():
		row.Kind = controlKind(r.Key)
	case r.Attrs.IsTransactional():
		row.Kind = "in a transaction"
	case r.Value == nil:
		row.Kind = "tombstone"
	}
	for i, h := range r.Headers {
		if i == shownHeaders {
			row.Headers = append(row.Headers, shownHeader{"…", shownBytes{Text: plural(len(r.Headers)-i, "more header"), Size: 1}})
			break
		}
		row.Headers = append(row.Headers, shownHeader{harmless(h.Key), shown(h.Value)})
	}
	if r.ProducerID >= 0 {
		row.Producer = "producer " + strconv.FormatInt(r.ProducerID, 10) + ", epoch " + strconv.Itoa(int(r.ProducerEpoch))
	}
	return row
}

// controlKind says what a marker's key means: its version, then its type (KIP-98).
func controlKind(key []byte) string {
	if len(key) >= 4 {
		switch binary.BigEndian.Uint16(key[2:]) {
		case 0:
			return "abort marker"
		case 1:
			return "commit marker"
		}
	}
	return "marker"
}

// shown cuts bytes and makes text of them, or hexadecimal digits where they are none.
func shown(b []byte) shownBytes {
	s := shownBytes{Null: b == nil, Size: len(b)}
	if utf8.Valid(b) {
		if s.Cut = len(b) > shownText; s.Cut {
			b = []byte(strings.ToValidUTF8(string(b[:shownText]), ""))
		}
		s.Text = harmless(string(b))
		return s
	}
	s.Binary, s.Cut = true, len(b) > shownHex
	const digits = "0123456789abcdef"
	var out strings.Builder
	for i, one := range b[:min(len(b), shownHex)] {
		if i > 0 && i%2 == 0 {
			out.WriteByte(' ')
		}
		out.WriteByte(digits[one>>4])
		out.WriteByte(digits[one&15])
	}
	s.Text = out.String()
	return s
}

// harmless shows control characters, and those that turn the direction of text, as signs.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x80 && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0xfeff:
			return utf8.RuneError
		}
		return control(r)
	}, text)
}

// control is the picture of a control character, and any other as it is.
func control(r rune) rune {
	const pictures, deleted = 0x2400, 0x2421
	switch {
	case r == '\n' || r == '\t':
		return r
	case r < ' ':
		return pictures + r
	case r == 0x7f:
		return deleted
	}
	return r
}

// downloadedRecord is a row of a download. A key or value that is no text is in base64.
type downloadedRecord struct {
	Topic     string             `json:"topic"`
	Partition int32              `json:"partition"`
	Offset    int64              `json:"offset"`
	Timestamp int64              `json:"timestamp"`
	Key       *string            `json:"key"`
	KeyBytes  []byte             `json:"key_base64,omitempty"`
	Value     *string            `json:"value"`
	Bytes     []byte             `json:"value_base64,omitempty"`
	Headers   []downloadedHeader `json:"headers"`
}

type downloadedHeader struct {
	Key   string `json:"key"`
	Value []byte `json:"value_base64"`
}

// downloadMessages answers with rows of JSON, one a line, or with CSV, where that was asked for.
func downloadMessages(_ *Console, w http.ResponseWriter, q question, data any) bool {
	d := data.(*messagesData)
	format := q.get("format")
	types := map[string]string{"json": "application/x-ndjson; charset=utf-8", "csv": "text/csv; charset=utf-8"}
	if types[format] == "" {
		return false
	}
	w.Header().Set("Content-Type", types[format])
	w.Header().Set("Content-Disposition", `attachment; filename="`+d.Name+"."+format+`"`) // names of topics need no quoting
	if format == "csv" {
		writeCSV(w, d)
		return true
	}
	rows := json.NewEncoder(w)
	rows.SetEscapeHTML(false)
	for _, r := range d.Found.records {
		row := downloadedRecord{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Headers: []downloadedHeader{}}
		row.Key, row.KeyBytes = textOrBytes(r.Key)
		row.Value, row.Bytes = textOrBytes(r.Value)
		for _, h := range r.Headers {
			row.Headers = append(row.Headers, downloadedHeader{h.Key, h.Value})
		}
		if rows.Encode(row) != nil {
			break // who has gone needs no answer
		}
	}
	return true
}

func textOrBytes(b []byte) (*string, []byte) {
	switch {
	case b == nil:
		return nil, nil
	case !utf8.Valid(b):
		return nil, b
	}
	text := string(b)
	return &text, nil
}

func writeCSV(w http.ResponseWriter, d *messagesData) {
	rows := csv.NewWriter(w)
	_ = rows.Write([]string{"partition", "offset", "timestamp", "key", "value"}) // what cannot be sent shows in Flush, and then nobody is there
	for _, r := range d.Found.records {
		_ = rows.Write([]string{strconv.Itoa(int(r.Partition)), strconv.FormatInt(r.Offset, 10), r.Timestamp.UTC().Format(time.RFC3339Nano), cell(r.Key), cell(r.Value)})
	}
	rows.Flush()
}

// cell is a cell of a table: what a spreadsheet would take for a formula gets a quote before it.
func cell(b []byte) string {
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// Size64 is for templates.
func (s shownBytes) Size64() int64 { return int64(s.Size) }
