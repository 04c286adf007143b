package dumplog

import (
	"encoding/binary"
	"fmt"
)

// An entry of a transaction index: version (2 bytes), producer id, first offset, last offset and last stable offset (8
// each).
const txnEntrySize = 34

func (d *dumper) abortedTransactions(name string) error {
	data, err := readWhole(name)
	if err != nil {
		return err
	}
	be := binary.BigEndian
	for p := data; len(p) >= txnEntrySize; p = p[txnEntrySize:] { // half an entry at the end is passed over in silence, as in the original
		fmt.Fprintf(d.out, "version: %d producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n", int16(be.Uint16(p)),
			int64(be.Uint64(p[2:])), int64(be.Uint64(p[10:])), int64(be.Uint64(p[18:])), int64(be.Uint64(p[26:])))
	}
	return nil
}
