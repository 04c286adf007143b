package commitlog

import (
	"barnabas/broker/record"
)

// written is one entry of an append, a batch or a message of an old format: where its bytes lie among the appended ones,
// and what the log needs of it.
type written struct {
	batch   record.Batch // nil: a message of format v0 or v1, maybe a wrapper of many
	at      int64
	size    int64
	base    int64 // of a message: its own offset, which is a wrapper's last
	last    int64
	maxTime int64
}

func writtenBatch(b record.Batch, at int64) written {
	return written{batch: b, at: at, size: int64(b.Size()), base: b.BaseOffset(), last: b.LastOffset(), maxTime: b.MaxTimestamp()}
}

func writtenMessage(m record.Message, at int64) written {
	return written{at: at, size: int64(len(m)), base: m.Offset(), last: m.Offset(), maxTime: m.Timestamp()}
}

// nextEntry takes the entry at the start of buf, which lies at among all of an append, and checks its CRC. Errors are those
// of record.Next.
func nextEntry(buf []byte, at int64) (w written, rest []byte, err error) {
	e, rest, err := record.NextEntry(buf)
	if err != nil {
		return written{}, nil, err
	}
	if b, ok := e.Batch(); ok {
		w = writtenBatch(b, at)
	} else {
		w = writtenMessage(record.Message(e), at)
	}
	return w, rest, checkEntry(e)
}

// firstKnown is the first offset of the entry, 0 if only decompression would tell.
func (w *written) firstKnown() int64 {
	if w.batch == nil {
		return 0
	}
	return w.base
}

// count is the number of records, as far as the head of the entry tells it.
func (w *written) count() int {
	if w.batch == nil {
		return 1
	}
	return int(w.batch.Count())
}

// follow is what the entry makes of the epochs of a log that is appended to. Messages have none: where they are written
// truncation has to go by the high watermark again, as in the releases that wrote them.
func (w *written) follow(epochs epochList) (epochList, bool, error) {
	if w.batch == nil {
		return nil, len(epochs) > 0, nil
	}
	return epochs.follow(w.batch.PartitionLeaderEpoch(), w.base)
}
