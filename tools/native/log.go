package native

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/urfave/cli/v2"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
	"barnabas/tools/dumplog"
	"barnabas/tools/logdir"
)

func logCommand() *cli.Command {
	return parent("log", "look into log directories, without a broker", logDump(), logVerify())
}

// batchLine is a batch of a log.
type batchLine struct {
	Version       int     `json:"version"`
	File          string  `json:"file"`
	Position      int64   `json:"position"`
	Size          int64   `json:"size_bytes"`
	BaseOffset    int64   `json:"base_offset"`
	LastOffset    int64   `json:"last_offset"`
	Count         *int64  `json:"count"`
	Magic         int8    `json:"magic"`
	Codec         string  `json:"codec"`
	MaxTimestamp  *int64  `json:"max_timestamp"`
	TimeType      string  `json:"timestamp_type"` // create, append or none
	LeaderEpoch   *int64  `json:"leader_epoch"`
	ProducerID    *int64  `json:"producer_id"`
	ProducerEpoch *int64  `json:"producer_epoch"`
	BaseSequence  *int64  `json:"base_sequence"`
	Transactional bool    `json:"transactional"`
	Marker        *string `json:"marker"` // of a control batch: commit, abort or other
	Valid         bool    `json:"valid"`
}

func batchLineOf(file string, b dumplog.Batch) *batchLine {
	l := &batchLine{Version: documentVersion, File: file, Position: b.Position, Size: b.Size, BaseOffset: b.BaseOffset, LastOffset: b.LastOffset, Magic: b.Magic, Codec: b.Codec, MaxTimestamp: known(b.MaxTimestamp), TimeType: "create",
		LeaderEpoch: known(int64(b.LeaderEpoch)), ProducerID: known(b.ProducerID), ProducerEpoch: known(int64(b.ProducerEpoch)), BaseSequence: known(int64(b.BaseSequence)), Transactional: b.Transactional, Valid: b.Valid}
	if b.Count > 0 {
		l.Count = known(int64(b.Count))
	}
	switch {
	case l.MaxTimestamp == nil:
		l.TimeType = "none"
	case b.LogAppendTime:
		l.TimeType = "append"
	}
	if b.Control {
		l.Marker = words("other")
		_ = b.Records(func(r record.Record) error {
			if m, ok, err := record.ParseEndTxnMarker(r); err == nil && ok {
				l.Marker = words("%s", strings.ToLower(m.Type.String()))
			}
			return nil
		})
	}
	return l
}

const batchColumns = "%-22s %12s %12s %10s %8s %-7s %6s %10s %10s %s\n"

func batchHead(w io.Writer) {
	fmt.Fprintf(w, batchColumns, "SEGMENT", "BASE", "LAST", "POSITION", "BYTES", "CODEC", "EPOCH", "PRODUCER", "SEQUENCE", "STATE")
}

func (l *batchLine) show(w io.Writer) {
	state := "valid"
	switch {
	case !l.Valid:
		state = "CHECKSUM WRONG"
	case l.Marker != nil:
		state = *l.Marker
	case l.Transactional:
		state = "transactional"
	}
	segment := filepath.Base(l.File)
	fmt.Fprintf(w, batchColumns, segment[:len(segment)-len(filepath.Ext(segment))], fmt.Sprint(l.BaseOffset), fmt.Sprint(l.LastOffset), fmt.Sprint(l.Position), fmt.Sprint(l.Size), l.Codec, maybe(l.LeaderEpoch), maybe(l.ProducerID), maybe(l.BaseSequence), state)
}

func logDump() *cli.Command {
	return command{
		name: "dump", usage: "print batches or records of logs", arguments: "PATH...", least: 1, most: -1, asks: nobody, lasts: true, formats: []string{"table", "json", "json-rows", "yaml"},
		help: `Reads segment files, or all of a partition's directory, as they lie on disk, also of a broker that does not start: a line for each batch, or with --records for each record. -o json (or json-rows) gives a document a line; records are those of 'barnabas consume', so that 'barnabas produce --input json-rows' takes what can be saved of a log.

A checksum that is wrong is told, and reading goes on; where bytes are no batches any more it ends with 1. 'barnabas log verify' says what a broker would make of it. kafka-dump-log shows indexes, snapshots and the coordinators' topics.

Fields of a batch: file, position, size_bytes, base_offset, last_offset, count, magic, codec, max_timestamp (milliseconds), timestamp_type, leader_epoch, producer_id, producer_epoch, base_sequence, transactional, marker (of a control batch: commit, abort or other), valid.
Fields of a record: topic, partition, offset, timestamp, timestamp_type, headers (key, value), key, value; key_base64 and value_base64 in place of key and value where they are no text.

    barnabas log dump /var/lib/kafka/orders-0 --from 1000 --max 10
    barnabas log dump /var/lib/kafka/orders-0 --records -o json-rows | barnabas produce orders-saved --input json-rows`,
		flags: []cli.Flag{
			&cli.BoolFlag{Name: "records", Usage: "print records in place of batches; control records are left out"},
			&cli.Int64Flag{Name: "from", Usage: "begin at the batch that has `OFFSET`, with --records at the record"},
			&cli.Int64Flag{Name: "max", Usage: "end after `N` of them"},
		},
		run: dumpLogs,
	}.build()
}

// dump is one run of log dump.
type dump struct {
	*call
	from, left int64 // left -1: any number
	format     string
	out        *bufio.Writer
}

func dumpLogs(c *call) (document, error) {
	d := &dump{c, c.Int64("from"), -1, strings.TrimSuffix(c.String("output"), "-rows"), bufio.NewWriter(c.App.Writer)} // JSON is by rows anyway
	if n := c.Int64("max"); n > 0 {
		d.left = n
	}
	if d.format == "table" && !c.Bool("records") {
		batchHead(d.out)
	}
	var err error
	for _, path := range c.Args().Slice() {
		if err = d.path(path); err != nil {
			break
		}
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return nil, cmp.Or(err, d.out.Flush())
}

// path reads a segment file, or the segments of a partition's directory.
func (d *dump) path(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return d.file(path, logdir.Log{Dir: filepath.Dir(path)})
	}
	logs, err := logdir.Find(path)
	if err != nil {
		return err
	}
	if abs, err := filepath.Abs(path); err != nil || len(logs) != 1 || logs[0].Dir != abs {
		return wrongUsage("%s is neither a segment file nor a partition's directory", path)
	}
	files, _, err := logs[0].Segments()
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := d.file(file, logs[0]); err != nil {
			return err
		}
	}
	return nil
}

func (d *dump) file(file string, of logdir.Log) error {
	if tp, _, ok := commitlog.PartitionOfDir(filepath.Base(of.Dir)); ok {
		of.Partition = tp
	}
	rest, err := dumplog.Batches(file, func(b dumplog.Batch) error {
		switch {
		case d.ctx.Err() != nil:
			return errEnough
		case b.LastOffset < d.from:
			return nil
		case !d.Bool("records"):
			return d.one(batchLineOf(file, b))
		case b.Control:
			return nil
		}
		return b.Records(func(r record.Record) error {
			if r.Offset < d.from {
				return nil
			}
			return d.one(recordRow(of.Partition, b, r))
		})
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return fmt.Errorf("%s: %w", file, err)
	case err == nil && rest > 0:
		d.note("%s: %s at the end are no whole batch", file, count(int(rest), "byte"))
	}
	return err
}

// one says a document, as long as there are to be more.
func (d *dump) one(doc document) error {
	if d.format == "yaml" {
		fmt.Fprintln(d.out, "---")
	}
	if err := render(d.out, d.format, doc, true); err != nil {
		return err
	}
	if d.left > 0 {
		if d.left--; d.left == 0 {
			return errEnough
		}
	}
	return nil
}

// recordRow is a record of a log as consume prints it.
func recordRow(tp commitlog.TopicPartition, b dumplog.Batch, r record.Record) *row {
	var headers []kgo.RecordHeader
	for _, h := range r.Headers {
		headers = append(headers, kgo.RecordHeader(h))
	}
	out := newRow(tp.Topic, tp.Partition, r.Offset, r.Key, r.Value, headers)
	switch {
	case b.Magic == 0:
	case b.LogAppendTime:
		out.Timestamp, out.TimeType = b.MaxTimestamp, "append"
	default:
		out.Timestamp, out.TimeType = r.Timestamp, "create"
	}
	return out
}

type verifiedLogs struct {
	Version int           `json:"version"`
	Sound   bool          `json:"sound"`
	InUse   []string      `json:"in_use"` // log directories that a broker has
	Logs    []verifiedLog `json:"logs"`
}

type verifiedLog struct {
	Dir       string       `json:"dir"`
	Topic     string       `json:"topic"`
	Partition int32        `json:"partition"`
	Future    bool         `json:"future"`
	Segments  int          `json:"segments"`
	Bytes     int64        `json:"size_bytes"`
	Problems  []logProblem `json:"problems"`
	Start     *startOfLog  `json:"start"` // what a start would make of it; null: not asked for
}

type logProblem struct {
	File     string `json:"file"`
	Position *int64 `json:"position"`
	Cause    string `json:"cause"`
}

// startOfLog is what a start would make of a log.
type startOfLog struct {
	Clean     bool    `json:"clean_stop"`
	Recovers  bool    `json:"recovers"`
	Cut       int64   `json:"cut_bytes"`
	Start     int64   `json:"log_start_offset"`
	End       int64   `json:"log_end_offset"`
	Committed *int64  `json:"lost_up_to"` // committed records up to here would be missing
	OutOfUse  *string `json:"out_of_use"`
}

func (l verifiedLog) sound() bool {
	return len(l.Problems) == 0 && (l.Start == nil || l.Start.OutOfUse == nil && l.Start.Committed == nil)
}

func (d *verifiedLogs) show(w io.Writer) {
	for _, dir := range d.InUse {
		fmt.Fprintf(w, "%s is in use: what a broker is writing looks torn.\n", dir)
	}
	rows := [][]string{{"LOG", "SEGMENTS", "BYTES", "START", "END", "PROBLEMS", "A START WOULD"}}
	for _, l := range d.Logs {
		start, end, would := "-", "-", "-"
		if s := l.Start; s != nil {
			start, end, would = strconv.FormatInt(s.Start, 10), strconv.FormatInt(s.End, 10), s.would()
		}
		rows = append(rows, []string{filepath.Base(l.Dir), strconv.Itoa(l.Segments), strconv.FormatInt(l.Bytes, 10), start, end, strconv.Itoa(len(l.Problems)), would})
	}
	columns(w, rows)
	for _, l := range d.Logs {
		for _, p := range l.Problems {
			fmt.Fprintf(w, "%s at %s: %s\n", p.File, maybe(p.Position), p.Cause)
		}
	}
}

// would says what a start would do.
func (s *startOfLog) would() string {
	switch {
	case s.OutOfUse != nil:
		return "take it out of use: " + *s.OutOfUse
	case s.Committed != nil:
		return fmt.Sprintf("cut %s, and records up to offset %d that were committed would be missing", count(int(s.Cut), "byte"), *s.Committed)
	case s.Cut > 0:
		return "cut " + count(int(s.Cut), "byte") + " that were not whole"
	case s.Recovers:
		return "check it, and keep all"
	}
	return "use it as it is"
}

func logVerify() *cli.Command {
	return command{
		name: "verify", usage: "check logs, and tell what a start would make of them", arguments: "DIR...", least: 1, most: -1, asks: nobody, lasts: true,
		help: `Reads every batch, index, leader epoch and producer snapshot of the logs in log directories, or of single partitions' directories, and tells what does not fit; then it rehearses a start, by the broker's own recovery but in memory. It changes nothing. Ends with 5 when something is wrong with a log.

After a stop that was not clean the last segment may have a torn tail and indexes that end early: those are told as problems, and the start says that it mends them. What is in use by a broker is told, and looks like that, too.

Fields: sound, in_use, logs (dir, topic, partition, future, segments, size_bytes, problems (file, position, cause), start (clean_stop, recovers, cut_bytes, log_start_offset, log_end_offset, lost_up_to, out_of_use)).

    barnabas log verify /var/lib/kafka
    barnabas log verify /var/lib/kafka/orders-0 --no-start -o json`,
		flags: []cli.Flag{&cli.BoolFlag{Name: "no-start", Usage: "do not rehearse a start"}},
		run: func(c *call) (document, error) {
			d := &verifiedLogs{documentVersion, true, []string{}, []verifiedLog{}}
			for _, path := range c.Args().Slice() {
				if err := c.verify(d, path); err != nil {
					return nil, err
				}
			}
			if !d.Sound {
				return d, Unhealthy
			}
			return d, nil
		},
	}.build()
}

// verify adds the logs in a directory.
func (c *call) verify(d *verifiedLogs, path string) error {
	logs, err := logdir.Find(path)
	if err != nil {
		return err
	}
	if len(logs) == 0 {
		return wrongUsage("there is no log in %s", path)
	}
	dir := filepath.Dir(logs[0].Dir)
	if used, err := logdir.InUse(dir); err != nil {
		return err
	} else if used && !slices.Contains(d.InUse, dir) {
		d.InUse = append(d.InUse, dir)
	}
	var starts logdir.Rehearsal
	if !c.Bool("no-start") {
		if starts, err = logdir.Rehearse(dir, logs); err != nil {
			return err
		}
	}
	for _, l := range logs {
		if c.ctx.Err() != nil {
			return errors.New("interrupted")
		}
		line := verifiedLog{Dir: l.Dir, Topic: l.Partition.Topic, Partition: l.Partition.Partition, Future: l.Future, Problems: []logProblem{}}
		files, bytes, err := l.Segments()
		if err != nil {
			return err
		}
		line.Segments, line.Bytes = len(files), bytes
		problems, err := l.Problems()
		if err != nil {
			return err
		}
		for _, p := range problems {
			line.Problems = append(line.Problems, logProblem{p.File, known(p.Position), p.Cause})
		}
		if o, ok := starts.Logs[l.Dir]; ok {
			line.Start = startOf(starts.Clean, o)
		}
		d.Sound = d.Sound && line.sound()
		d.Logs = append(d.Logs, line)
	}
	return nil
}

func startOf(clean bool, o logdir.Outcome) *startOfLog {
	s := &startOfLog{Clean: clean, Recovers: o.Recovery.Ran, Cut: o.Recovery.Truncated, Start: o.Start, End: o.End}
	if o.Recovery.LostCommitted() {
		s.Committed = known(o.Recovery.KnownCommitted)
	}
	if o.OutOfUse != nil {
		s.OutOfUse = words("%v", o.OutOfUse)
	}
	return s
}
