package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"barnabas/broker/commitlog"
	"barnabas/broker/group"
	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/txn"
	"barnabas/controller"
)

// deeds is what was promised of transactions (I13, I14, H51): what may be seen of each, and who may act for an id.
type deeds struct {
	s       *Sim
	all     []*deed
	newest  map[string]txn.Producer // that an id was given
	gifts   map[string]int
	readers []*reader
	by      map[inputRecord]int // which deed made of it what is seen
}

type inputRecord struct {
	partition int32
	offset    int64
}

func newDeeds(s *Sim) *deeds {
	d := &deeds{s: s, newest: map[string]txn.Producer{}, gifts: map[string]int{}, by: map[inputRecord]int{}}
	for p := range int32(durablePartitions) {
		d.readers = append(d.readers, &reader{tp: controller.TopicPartition{Topic: outputTopic, Partition: p}})
	}
	return d
}

func (d *deeds) begin(input group.TopicPartition, entries []entry, outputs int) *deed {
	n := &deed{number: len(d.all), input: input, from: entries[0].offset, upTo: entries[len(entries)-1].offset + 1, outputs: outputs, records: len(entries)}
	d.all = append(d.all, n)
	return n
}

// given sees a coordinator give out a producer id and an epoch: never less than what was given before.
func (d *deeds) given(id string, p txn.Producer) {
	before, known := d.newest[id]
	d.s.check(!known || p.ID != before.ID || p.Epoch > before.Epoch, "H51: %s is given epoch %d of producer %d after epoch %d", id, p.Epoch, p.ID, before.Epoch)
	for _, other := range slices.Sorted(maps.Keys(d.newest)) {
		d.s.check(other == id || d.newest[other].ID != p.ID, "H52: %s and %s are given producer %d", id, other, p.ID)
	}
	d.newest[id] = p
	d.gifts[id]++
}

func (d *deeds) givenSoFar(id string) int { return d.gifts[id] }

// judgeFence: nobody acts for an id after another one was given its next epoch.
func (d *deeds) judgeFence(t *transformer, gifts int, err error, what string) {
	d.s.check(err != nil || d.newest[t.id] == t.producer || d.gifts[t.id] > gifts,
		"H51: %s %s with epoch %d of producer %d, and epoch %d of %d was given to another one", t.id, what, t.producer.Epoch, t.producer.ID, d.newest[t.id].Epoch, d.newest[t.id].ID)
}

// seen sees a record that is committed.
func (d *deeds) seen(n *node, tp controller.TopicPartition, e entry) {
	var number int
	var of inputRecord
	if _, err := fmt.Sscanf(e.value, "x%d:%d:%d", &number, &of.partition, &of.offset); err != nil || number >= len(d.all) {
		d.s.check(false, "I13: node %d shows %q in %s, which nobody wrote", n.id, e.value, tp)
		return
	}
	t := d.all[number]
	d.s.check(t.commitSent, "I13: node %d shows %q of %s at offset %d, of transaction %d that nobody committed", n.id, e.value, tp, e.offset, number)
	other, twice := d.by[of]
	d.s.check(!twice, "I14: record %d of partition %d of the input was transformed by transactions %d and %d", of.offset, of.partition, other, number)
	d.by[of] = number
	t.seen++
}

// reader is a consumer that reads what is committed, and that looks at every record.
type reader struct {
	tp controller.TopicPartition
	at int64
}

// read goes on to where some replica allows.
func (d *deeds) read() {
	for _, r := range d.readers {
		if n, log := d.s.leaderOf(r.tp); log != nil {
			r.at = d.readFrom(n, r.tp, r.at, func(e entry) { d.seen(n, r.tp, e) })
		}
	}
}

// readFrom reads as consumers of committed records do, and returns where to go on.
func (d *deeds) readFrom(n *node, tp controller.TopicPartition, from int64, each func(entry)) int64 {
	for {
		before := from
		ask := partition.FetchPartition{Topic: tp.Topic, Partition: tp.Partition, FetchOffset: from, LogStartOffset: -1, MaxBytes: 16 << 10, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1}
		n.broker.replicas.Fetch(&partition.FetchRequest{ReplicaID: partition.ConsumerReplica, ReplicaEpoch: -1, Version: 12, MaxBytes: 16 << 10,
			ReadCommitted: !d.s.planted("readers of what is committed read to the high watermark"), Partitions: []partition.FetchPartition{ask}}, func(rs []partition.FetchResult) {
			r := &rs[0]
			defer r.Records.Release()
			buf, err := r.Records.ReadAll()
			if r.Err != nil || err != nil {
				return
			}
			aborted := r.Aborted
			if d.s.planted("aborted transactions are not listed") {
				aborted = nil
			}
			from = committedOnly(buf, from, aborted, each)
		})
		if from == before {
			return from
		}
	}
}

// committedOnly gives the records that a consumer shows its application: what it was told to be of an aborted transaction,
// up to that one's marker, is left out.
func committedOnly(buf []byte, from int64, aborted []commitlog.AbortedTxn, each func(entry)) int64 {
	dropped := map[int64]bool{}
	aborted = slices.SortedFunc(slices.Values(aborted), func(a, b commitlog.AbortedTxn) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	for len(buf) > 0 {
		b, rest, err := record.Next(buf)
		if err != nil {
			return from
		}
		buf = rest
		for len(aborted) > 0 && aborted[0].FirstOffset <= b.LastOffset() {
			dropped[aborted[0].ProducerID], aborted = true, aborted[1:]
		}
		switch {
		case b.IsControl():
			delete(dropped, b.ProducerID())
		case !dropped[b.ProducerID()]:
			entries, _, _ := unpack(nil, b, from)
			for _, e := range entries {
				each(e)
			}
		}
		from = max(from, b.LastOffset()+1)
	}
	return from
}

// settled tells what is not as it should be once all is calm: every record of the input was transformed, and no
// transaction is seen in part.
func (d *deeds) settled() error {
	for _, t := range d.all {
		if t.seen != 0 && t.seen != t.records || t.committed && t.seen == 0 {
			return fmt.Errorf("I14: of transaction %d, %d of %d records are seen (committed: %v)", t.number, t.seen, t.records, t.committed)
		}
	}
	for p := range int32(durablePartitions) {
		n, log := d.s.leaderOf(controller.TopicPartition{Topic: inputTopic, Partition: p})
		if n == nil {
			return errors.New("nobody leads the input")
		}
		for offset := range log.EndOffset() {
			if _, done := d.by[inputRecord{p, offset}]; !done {
				return fmt.Errorf("record %d of partition %d of the input is not transformed", offset, p)
			}
		}
	}
	for _, r := range d.readers {
		n, log := d.s.leaderOf(r.tp)
		if n == nil || r.at != log.EndOffset() {
			return fmt.Errorf("what is committed of %s cannot be read to its end: %s, last stable %d", r.tp, ends{log}, lastStable(log))
		}
		count := 0
		d.readFrom(n, r.tp, 0, func(entry) { count++ })
		if seen := d.seenIn(r.tp.Partition); count != seen {
			return fmt.Errorf("I13: %d records of %s are seen now, and %d were seen before", count, r.tp, seen)
		}
	}
	return nil
}

func (d *deeds) seenIn(p int32) int {
	n := 0
	for _, t := range d.all {
		if t.seen > 0 {
			for i := range t.records {
				if int32((t.number+i)%t.outputs) == p {
					n++
				}
			}
		}
	}
	return n
}

func lastStable(log *commitlog.Log) int64 {
	if log == nil {
		return -1
	}
	return log.LastStableOffset()
}
