package console

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// A scan reads a bounded piece of a topic and keeps the records that hold a text: so many records and bytes, for so long. What it has read is told, so that nobody takes "not found here" for
// "not there". It reads up to the ends as they were when it began.

const (
	scanRecords = 100_000
	scanBytes   = 64 << 20
	scanTime    = 8 * time.Second
	pieceBytes  = 1 << 20
	mostRows    = 500
)

// scan is what is looked for.
type scan struct {
	topic   cluster.Topic
	only    int32  // partition; -1: all
	from    string // newest, oldest, offset or time
	offset  int64
	at      int64 // milliseconds
	text    string
	in      string // any, key, value or header
	most    int    // rows
	records int64  // budget
}

// found is what a scan brought, and how far it came.
type found struct {
	records []*kgo.Record
	Scanned int64 // records
	Bytes   int64
	Of      int64  // offsets that there were to be scanned
	Stopped string // why it ended before that; "" when it did not
	Next    int64  // where to go on, of a single partition; -1: nowhere
	Faults  []string
}

// reader is a partition as far as it has been read.
type reader struct {
	partition plan.Partition
	leader    int32
	at, end   int64
	kept      []*kgo.Record
}

// run reads partition by partition, a piece of each in turn.
func (s scan) run(ctx context.Context, c Cluster) (*found, error) {
	ctx, cancel := context.WithTimeout(ctx, scanTime)
	defer cancel()
	f := &found{Next: -1}
	readers, err := s.readers(ctx, c, f)
	if err != nil {
		return nil, err
	}
	for _, r := range readers {
		f.Of += max(0, r.end-r.at)
	}
	open := slices.Clone(readers)
	for len(open) > 0 && f.Stopped == "" {
		r := open[0]
		open = open[1:]
		if r.at >= r.end {
			continue
		}
		piece, err := c.Read(ctx, r.leader, r.partition, r.at, pieceBytes)
		switch {
		case ctx.Err() != nil:
			f.Stopped = "the time was up"
			continue
		case err != nil:
			f.Faults = append(f.Faults, r.partition.String()+": "+err.Error())
			continue
		case piece.Next <= r.at && len(piece.Records) == 0:
			continue // nothing below the end is left of it
		}
		s.keep(r, piece.Records, f)
		r.at = max(r.at+1, piece.Next)
		open = append(open, r)
	}
	s.collect(readers, f)
	return f, nil
}

// readers are the partitions with where each is to be read from.
func (s scan) readers(ctx context.Context, c Cluster, f *found) ([]*reader, error) {
	var readers []*reader
	var partitions []plan.Partition
	for _, p := range s.topic.Partitions {
		if s.only >= 0 && p.ID != s.only {
			continue
		}
		key := plan.Partition{Topic: s.topic.Name, ID: p.ID}
		if p.Unavailable() {
			f.Faults = append(f.Faults, key.String()+": nobody leads it")
			continue
		}
		readers, partitions = append(readers, &reader{partition: key, leader: p.Leader}), append(partitions, key)
	}
	starts, _, err := c.Offsets(ctx, partitions, cluster.Earliest)
	if err != nil {
		return nil, err
	}
	ends, failed, err := c.Offsets(ctx, partitions, cluster.Latest)
	if err != nil {
		return nil, err
	}
	times := map[plan.Partition]int64{}
	if s.from == "time" {
		if times, _, err = c.Offsets(ctx, partitions, s.at); err != nil {
			return nil, err
		}
	}
	depth := int64(s.most)
	if s.text != "" {
		depth = max(depth, s.records/int64(max(1, len(readers))))
	}
	for _, r := range readers {
		start, begun := starts[r.partition]
		end, ended := ends[r.partition]
		if !begun || !ended {
			reason := "its offsets are not known"
			if err := failed[r.partition]; err != nil {
				reason = err.Error()
			}
			f.Faults = append(f.Faults, r.partition.String()+": "+reason)
			continue
		}
		r.at, r.end = start, end
		switch s.from {
		case "newest":
			r.at = max(start, end-depth)
		case "offset":
			r.at = min(max(start, s.offset), end)
		case "time":
			r.at = end
			if at, later := times[r.partition]; later {
				r.at = max(start, at)
			}
		}
	}
	return readers, nil
}

// keep takes the records that match, and says when it is enough.
func (s scan) keep(r *reader, records []*kgo.Record, f *found) {
	for _, one := range records {
		if one.Offset >= r.end {
			return
		}
		f.Scanned++
		f.Bytes += int64(len(one.Key) + len(one.Value))
		if s.matches(one) {
			r.kept = append(r.kept, one)
			if s.from == "newest" && len(r.kept) > s.most {
				r.kept = slices.Delete(r.kept, 0, 1)
			}
		}
		switch {
		case s.from != "newest" && len(r.kept) >= s.most && s.only >= 0:
			f.Stopped, f.Next = "enough were found", one.Offset+1
			return
		case f.Scanned >= s.records:
			f.Stopped = "enough records were read"
		case f.Bytes >= scanBytes:
			f.Stopped = "enough bytes were read"
		default:
			continue
		}
		if s.only >= 0 && s.from != "newest" {
			f.Next = one.Offset + 1
		}
		return
	}
	if s.from != "newest" && s.only < 0 && len(r.kept) >= s.most {
		r.at = r.end // others may have older ones
	}
}

// matches looks for the text as it is: there are no patterns, so nothing that is typed can take long.
func (s scan) matches(r *kgo.Record) bool {
	if s.text == "" {
		return true
	}
	text := []byte(s.text)
	has := func(where string, what []byte) bool {
		return (s.in == "any" || s.in == where) && bytes.Contains(what, text)
	}
	return has("key", r.Key) || has("value", r.Value) || slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool {
		return has("header", h.Value) || (s.in == "any" || s.in == "header") && strings.Contains(h.Key, s.text)
	})
}

// collect brings the partitions' records together: the newest first where that was asked for, the oldest otherwise.
func (s scan) collect(readers []*reader, f *found) {
	for _, r := range readers {
		f.records = append(f.records, r.kept...)
	}
	slices.SortStableFunc(f.records, func(a, b *kgo.Record) int {
		older := cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
		if s.from == "newest" {
			return -older
		}
		return older
	})
	if len(f.records) > s.most {
		f.records = f.records[:s.most]
	}
	slices.Sort(f.Faults)
	f.Faults = slices.Compact(f.Faults)
}
