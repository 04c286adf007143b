package dumplog

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"barnabas/broker/record"
)

// An offset index is pairs of relative offset (4 bytes) and position (4 bytes); a time index is pairs of timestamp (8)
// and relative offset (4). Both are sparse and may end in zeros, if the broker that wrote them was killed.
const (
	offsetEntrySize = 8
	timeEntrySize   = 12
)

// index is the whole file in memory; index files are bounded by segment.index.bytes, 10 MiB by default.
type index struct {
	name    string
	base    int64
	entries int
	width   int
	data    []byte
}

// maxIndexSize bounds what is read: entries count bytes of a log of at most 2 GiB.
const maxIndexSize = 1 << 30

func readIndex(name string, width int) (*index, error) {
	base, err := baseOffset(name)
	if err != nil {
		return nil, err
	}
	f, size, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > maxIndexSize {
		return nil, fmt.Errorf("%s: an index of %d bytes", name, size)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &index{name: name, base: base, entries: len(data) / width, width: width, data: data}, nil
}

func (x *index) offsetEntry(i int) (offset, position int64) {
	e := x.data[i*offsetEntrySize:]
	return x.base + int64(binary.BigEndian.Uint32(e)), int64(int32(binary.BigEndian.Uint32(e[4:])))
}

func (x *index) timeEntry(i int) (timestamp, offset int64) {
	e := x.data[i*timeEntrySize:]
	return int64(binary.BigEndian.Uint64(e)), x.base + int64(binary.BigEndian.Uint32(e[8:]))
}

// position is where to start looking for an offset.
func (x *index) position(offset int64) int64 {
	n := sort.Search(x.entries, func(i int) bool {
		o, _ := x.offsetEntry(i)
		return o > offset
	})
	if n == 0 {
		return 0
	}
	_, position := x.offsetEntry(n - 1)
	return position
}

func (d *dumper) offsetIndex(name string) error {
	s, err := openSegment(sibling(name, ".log"))
	if err != nil {
		return err
	}
	defer s.close()
	x, err := readIndex(name, offsetEntrySize)
	if err != nil {
		return err
	}
	if x.entries == 0 {
		fmt.Fprintf(d.out, "%s is empty.\n", name)
		return nil
	}
	if d.sanityOnly {
		last, _ := x.offsetEntry(x.entries - 1)
		return d.sane(x, last)
	}
	for i := range x.entries {
		offset, position := x.offsetEntry(i)
		if offset == x.base && i > 0 {
			return nil // zeros from here on
		}
		if position > s.size {
			return &exception{"java.lang.IllegalArgumentException", fmt.Sprintf("Slice from position %d exceeds end position of FileRecords(size=%d, file=%s, start=0, end=%d)",
				position, s.size, absolute(s.name), maxInt32)}
		}
		b, err := (&segment{f: s.f, name: s.name, size: min(s.size, position+d.maxMessageSize)}).at(position)
		if err == io.EOF {
			return &exception{"java.util.NoSuchElementException", fmt.Sprintf("no batch at position %d of %s", position, s.name)}
		}
		if err != nil {
			return err
		}
		if b.lastOffset() != offset {
			d.faults.index.add(absolute(name), offset, b.lastOffset())
		}
		if !d.verifyOnly {
			fmt.Fprintf(d.out, "offset: %d position: %d\n", offset, position)
		}
	}
	return nil
}

// sane makes the check that a broker makes when it starts. Its errors end the run, as in the original.
func (d *dumper) sane(x *index, last int64) error {
	class, end := "kafka.log.CorruptIndexException", "."
	if d.newer {
		class, end = "org.apache.kafka.storage.internals.log.CorruptIndexException", ""
	}
	switch {
	case last < x.base:
		return &exception{class, fmt.Sprintf("Corrupt %s found, index file (%s) has non-zero size but the last offset is %d which is less than the base offset %d%s",
			x.kind(), absolute(x.name), last, x.base, end)}
	case len(x.data)%x.width != 0:
		kind := x.kind()
		return &exception{class, fmt.Sprintf("%s file %s is corrupt, found %d bytes which is neither positive nor a multiple of %d%s",
			strings.ToUpper(kind[:1])+kind[1:], absolute(x.name), len(x.data), x.width, end)}
	}
	fmt.Fprintf(d.out, "%s passed sanity check.\n", x.name)
	return nil
}

func (x *index) kind() string {
	if x.width == timeEntrySize {
		return "time index"
	}
	return "index"
}

func (d *dumper) timeIndex(name string) error {
	s, err := openSegment(sibling(name, ".log"))
	if err != nil {
		return err
	}
	defer s.close()
	offsets, err := readIndex(sibling(name, ".index"), offsetEntrySize)
	if err != nil {
		return err
	}
	x, err := readIndex(name, timeEntrySize)
	if err != nil {
		return err
	}
	if d.sanityOnly {
		last := x.base
		if x.entries > 0 {
			_, last = x.timeEntry(x.entries - 1)
		}
		return d.sane(x, last)
	}
	previous := record.NoTimestamp
	for i := range x.entries {
		timestamp, offset := x.timeEntry(i)
		if offset == x.base && i > 0 {
			return nil // zeros from here on
		}
		if err := d.checkTime(s, offsets.position(offset), name, timestamp, offset, previous); err != nil {
			return err
		}
		if !d.verifyOnly {
			fmt.Fprintf(d.out, "timestamp: %d offset: %d\n", timestamp, offset)
		}
		previous = timestamp
	}
	return nil
}

// checkTime looks for the batch that a time index entry speaks of.
func (d *dumper) checkTime(s *segment, position int64, name string, timestamp, offset, previous int64) error {
	for {
		b, err := s.at(position)
		if err == io.EOF {
			d.faults.offsetNotFound.add(absolute(name), offset, -1)
			return nil
		}
		if err != nil {
			return err
		}
		if b.lastOffset() < offset {
			position += b.size()
			continue
		}
		if b.lastOffset() != offset {
			d.faults.offsetNotFound.add(absolute(name), offset, b.lastOffset())
			return nil
		}
		largest := record.NoTimestamp
		if err := b.each(func(r logRecord) error { largest = max(largest, r.Timestamp); return nil }); err != nil {
			return err
		}
		if largest != timestamp {
			d.faults.timestamps.add(absolute(name), timestamp, largest)
		}
		if previous >= timestamp {
			d.faults.timeOrder.add(absolute(name), timestamp, previous)
		}
		return nil
	}
}
