package tools

import (
	"fmt"

	"barnabas/admin/plan"
	"barnabas/broker/record"
)

// replicaPiece is what one replica holds of a partition from an offset on; nothing where its broker did not answer.
type replicaPiece struct {
	replica       int32
	highWatermark int64
	logStart      int64
	batches       []byte
}

// next is the next batch that is whole and below the high watermark. The rest is left for the next round.
func (p *replicaPiece) next() (record.Batch, bool) {
	b, rest, err := record.Next(p.batches)
	if err != nil || len(b) == 0 || b.LastOffset() >= p.highWatermark {
		return nil, false
	}
	p.batches = rest
	return b, true
}

// compareHeld compares what replicas hold of a partition, batch by batch, as far as all of them have something. It tells up to where that is, and what differs: a checksum is reported and passed
// over; after different offsets nothing can be compared any more, which is fatal.
//
// A partition whose beginning was deleted in the meantime goes on where all replicas begin.
func compareHeld(p plan.Partition, from int64, held []replicaPiece) (next int64, differences []string, fatal bool) {
	next = from
	for _, h := range held {
		next = max(next, h.logStart)
	}
	if next > from {
		return next, nil, false
	}
	for {
		batches := make([]record.Batch, len(held))
		for i := range held {
			b, ok := held[i].next()
			if !ok {
				return next, differences, false
			}
			batches[i] = b
		}
		first := batches[0]
		for i, b := range batches[1:] {
			replica := held[i+1].replica
			if b.LastOffset() != first.LastOffset() {
				return next, append(differences, fmt.Sprintf("partition %v: replica %d's offset %d doesn't match replica %d's offset %d", p, held[0].replica, first.LastOffset(), replica, b.LastOffset())), true
			}
			if b.CRC() != first.CRC() {
				differences = append(differences, fmt.Sprintf("partition %v has unmatched checksum at offset %d; replica %d's checksum %d; replica %d's checksum %d", p, b.LastOffset(), held[0].replica, first.CRC(),
					replica, b.CRC()))
			}
		}
		next = first.LastOffset() + 1
	}
}
