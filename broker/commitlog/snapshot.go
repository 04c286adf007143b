package commitlog

// Producer snapshots: the producer state at one offset, in a file named by it. FORMAT.md has the layout.

import (
	"encoding/binary"
	"hash/crc32"
	"path/filepath"

	"barnabas/broker/vfs"
)

const (
	snapshotSuffix     = ".snapshot"
	snapshotVersion    = 1
	snapshotHeader     = 2 + 4 + 4
	snapshotEntry      = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8
	maxSnapshotBytes   = 1 << 30
	snapshotCRCOffset  = 2
	snapshotDataOffset = 6
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeSnapshot gives the content of a snapshot, producers in the given order.
func encodeSnapshot(list []*producer) []byte {
	out := make([]byte, 0, snapshotHeader+len(list)*snapshotEntry)
	out = binary.BigEndian.AppendUint16(out, snapshotVersion)
	out = binary.BigEndian.AppendUint32(out, 0)
	out = binary.BigEndian.AppendUint32(out, uint32(len(list)))
	for _, p := range list {
		last, _ := p.last()
		out = binary.BigEndian.AppendUint64(out, uint64(p.id))
		out = binary.BigEndian.AppendUint16(out, uint16(p.epoch))
		out = binary.BigEndian.AppendUint32(out, uint32(last.lastSeq))
		out = binary.BigEndian.AppendUint64(out, uint64(last.lastOffset))
		out = binary.BigEndian.AppendUint32(out, uint32(last.delta))
		out = binary.BigEndian.AppendUint64(out, uint64(p.lastTimestamp))
		out = binary.BigEndian.AppendUint32(out, uint32(p.coordinatorEpoch))
		out = binary.BigEndian.AppendUint64(out, uint64(p.txnStart))
	}
	binary.BigEndian.PutUint32(out[snapshotCRCOffset:], crc32.Checksum(out[snapshotDataOffset:], castagnoli))
	return out
}

// parseSnapshot reads what encodeSnapshot and Kafka write. file is for the error.
func parseSnapshot(file string, data []byte) ([]producer, error) {
	if len(data) < snapshotHeader {
		return nil, corruptAt(file, 0, "%d bytes are no snapshot", len(data))
	}
	if v := binary.BigEndian.Uint16(data); v != snapshotVersion {
		return nil, corruptAt(file, 0, "unknown version %d", v)
	}
	if want, got := binary.BigEndian.Uint32(data[snapshotCRCOffset:]), crc32.Checksum(data[snapshotDataOffset:], castagnoli); want != got {
		return nil, corruptAt(file, snapshotCRCOffset, "crc is %d, computed %d", want, got)
	}
	n := int64(binary.BigEndian.Uint32(data[snapshotDataOffset:]))
	if n*snapshotEntry != int64(len(data)-snapshotHeader) {
		return nil, corruptAt(file, snapshotDataOffset, "%d producers announced in %d bytes", n, len(data))
	}
	list := make([]producer, 0, n)
	for at := data[snapshotHeader:]; len(at) > 0; at = at[snapshotEntry:] {
		p := newProducer(int64(binary.BigEndian.Uint64(at)))
		p.epoch = int16(binary.BigEndian.Uint16(at[8:]))
		last := batchMeta{
			lastSeq:    int32(binary.BigEndian.Uint32(at[10:])),
			lastOffset: int64(binary.BigEndian.Uint64(at[14:])),
			delta:      int32(binary.BigEndian.Uint32(at[22:])),
			timestamp:  int64(binary.BigEndian.Uint64(at[26:])),
		}
		p.lastTimestamp = last.timestamp
		p.coordinatorEpoch = int32(binary.BigEndian.Uint32(at[34:]))
		p.txnStart = int64(binary.BigEndian.Uint64(at[38:]))
		if p.txnStart < 0 {
			p.txnStart = noOffset
		}
		if last.lastOffset >= 0 {
			p.add(last)
		}
		list = append(list, p)
	}
	return list, nil
}

// readSnapshot reads the snapshot at offset of a partition's directory.
func readSnapshot(f vfs.FS, dir string, offset int64) ([]producer, error) {
	path := filepath.Join(dir, fileName(offset, snapshotSuffix))
	data, err := readSmallFile(f, path, maxSnapshotBytes)
	if err != nil {
		return nil, err
	}
	return parseSnapshot(path, data)
}
