package dumplog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
)

// A producer snapshot: version (2 bytes, 1), CRC-32C of all behind it (4), count (4), then per producer 8 id, 2 epoch,
// 4 last sequence, 8 last offset, 4 offset delta, 8 timestamp, 4 coordinator epoch, 8 first offset of the open
// transaction.
const (
	snapshotHead    = 10
	snapshotEntry   = 46
	snapshotVersion = 1
)

func (d *dumper) snapshot(name string) error {
	data, err := readWhole(name)
	if err != nil {
		return err
	}
	if reason := snapshotFault(data); reason != "" {
		d.out.Flush()
		fmt.Fprintln(d.err, reason) // and on to the next file, as the original does
		return nil
	}
	be := binary.BigEndian
	count := int(be.Uint32(data[6:]))
	for p := data[snapshotHead:]; count > 0; p, count = p[snapshotEntry:], count-1 {
		var (
			lastSequence = int32(be.Uint32(p[10:]))
			lastOffset   = int64(be.Uint64(p[14:]))
			delta        = int32(be.Uint32(p[22:]))
			timestamp    = int64(be.Uint64(p[26:]))
			txnFirst     = int64(be.Uint64(p[38:]))
		)
		open := "None"
		if txnFirst >= 0 {
			open = fmt.Sprintf("Some(%d)", txnFirst)
		}
		if d.newer {
			open = optionalLong(txnFirst, txnFirst >= 0)
		}
		fmt.Fprintf(d.out, "producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s ",
			int64(be.Uint64(p)), int16(be.Uint16(p[8:])), int32(be.Uint32(p[34:])), open)
		if d.newer {
			fmt.Fprintf(d.out, "lastTimestamp: %d ", timestamp)
		}
		if lastOffset >= 0 {
			fmt.Fprintf(d.out, "firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
				firstSequence(lastSequence, delta), lastSequence, lastOffset, delta, timestamp)
		}
		fmt.Fprintln(d.out)
	}
	return nil
}

// field of a snapshot, with the name that it has in messages.
type field struct {
	name string
	size int
}

var (
	headFields  = []field{{"version", 2}, {"crc", 4}, {"producer_entries", 4}}
	entryFields = []field{{"producer_id", 8}, {"epoch", 2}, {"last_sequence", 4}, {"last_offset", 8}, {"offset_delta", 4}, {"timestamp", 8},
		{"coordinator_epoch", 4}, {"current_txn_first_offset", 8}}
)

// missing names the first of the fields that n bytes do not hold, "" if they hold all.
func missing(fields []field, n int) string {
	for _, f := range fields {
		if n -= f.size; n < 0 {
			return f.name
		}
	}
	return ""
}

// snapshotFault says why data is no snapshot; "" if it is one.
func snapshotFault(data []byte) string {
	const schema, underflow = "Snapshot failed schema validation: ", "Error reading field '%s': java.nio.BufferUnderflowException"
	if name := missing(headFields, len(data)); name != "" {
		return fmt.Sprintf(schema+underflow, name)
	}
	left := len(data) - snapshotHead
	count := int64(int32(binary.BigEndian.Uint32(data[6:])))
	switch {
	case count < 0:
		return fmt.Sprintf(schema+"Error reading field 'producer_entries': Array size %d cannot be negative", count)
	case count > int64(left):
		return fmt.Sprintf(schema+"Error reading field 'producer_entries': Error reading array of size %d, only %d bytes available", count, left)
	case count*snapshotEntry > int64(left):
		return fmt.Sprintf(schema+"Error reading field 'producer_entries': "+underflow, missing(entryFields, left%snapshotEntry))
	}
	if v := int16(binary.BigEndian.Uint16(data)); v != snapshotVersion {
		return fmt.Sprintf("Snapshot contained an unknown file version %d", v)
	}
	stored := binary.BigEndian.Uint32(data[2:])
	if computed := crc32.Checksum(data[6:], crc32.MakeTable(crc32.Castagnoli)); stored != computed {
		return fmt.Sprintf("Snapshot is corrupt (CRC is no longer valid). Stored crc: %d. Computed crc: %d", stored, computed)
	}
	return ""
}

// firstSequence counts back from the last sequence; sequences wrap behind 2^31-1.
func firstSequence(last, delta int32) int32 { return (last - delta) & maxInt32 }

// maxSmallFile bounds what is read into memory of files that hold a few numbers for each producer or transaction.
const maxSmallFile = 1 << 30

func readWhole(name string) ([]byte, error) {
	st, err := os.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &exception{"java.nio.file.NoSuchFileException", name}
	}
	if err != nil {
		return nil, err
	}
	if st.Size() > maxSmallFile {
		return nil, fmt.Errorf("%s: %d bytes", name, st.Size())
	}
	return os.ReadFile(name)
}
