package api

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin"
	"barnabas/broker/record"
	"barnabas/broker/txn"
)

// entries is what can be said of a partition's records without opening them.
type entries struct {
	count         int // whole entries: batches, or messages of an old format
	magic         int8
	codec         record.Codec // of the first, if it is a batch
	transactional bool         // any batch claims to be
	producer      txn.Producer // of the last batch that does
}

const (
	entryOverhead = 12 // offset and size, which stand before every entry
	upToMagic     = 17 // bytes until the magic, in every format
	smallestEntry = 14 // size of the smallest message of format 0
	batchMagic    = int8(2)

	batchesOnlySince = int16(3) // Produce versions below carry messages of the formats before
)

// look walks over the entries. An entry that is cut off ends the walk without
// an error, as it does in Kafka: it is not there.
func look(records []byte) (entries, error) {
	var e entries
	for len(records) >= entryOverhead {
		size, _ := record.PeekSize(records)
		if size-entryOverhead < smallestEntry {
			return e, damaged("Record size " + strconv.FormatInt(size-entryOverhead, 10) +
				" is less than the minimum record overhead (" + strconv.Itoa(smallestEntry) + ")")
		}
		if len(records) < upToMagic {
			break
		}
		magic, _ := record.PeekMagic(records)
		if magic < 0 || magic > batchMagic {
			return e, damaged("Invalid magic found in record: " + strconv.Itoa(int(magic)))
		}
		if int64(len(records)) < size {
			break
		}
		e.add(magic, records[:size])
		records = records[size:]
	}
	return e, nil
}

func damaged(message string) error {
	return &admin.Error{Code: kerr.CorruptMessage, Message: message}
}

func (e *entries) add(magic int8, entry []byte) {
	e.count++
	isBatch := magic == batchMagic && len(entry) >= record.HeaderSize
	if e.count == 1 {
		e.magic = magic
		if isBatch {
			e.codec = record.Batch(entry).Codec()
		}
	}
	if isBatch && record.Batch(entry).IsTransactional() {
		e.transactional = true
		e.producer = txn.Producer{ID: record.Batch(entry).ProducerID(), Epoch: record.Batch(entry).ProducerEpoch()}
	}
}

// allowed holds the records of one partition to what a version of Produce
// carries: one batch, of format 2, in a codec that the version knows. Versions
// below that of batches are held to nothing here: there were clients that sent
// another format than their version's.
func (e *entries) allowed(version int16) error {
	switch {
	case version < batchesOnlySince:
		return nil
	case e.count == 0, e.magic != batchMagic:
		return kerr.InvalidRecord
	case version < 7 && e.codec == record.Zstd:
		return kerr.UnsupportedCompressionType
	case e.count > 1:
		return kerr.InvalidRecord
	}
	return nil
}
