package simulation

import (
	"fmt"
	"slices"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
	"barnabas/controller"
	"barnabas/zkstate"
)

// incarnation is one partition of one topic that had the name.
type incarnation struct {
	tp   controller.TopicPartition
	made int
}

// history is what was promised of a partition: committed are the records that an acks=all producer got an answer for
// or a consumer was shown.
type history struct {
	committed map[int64]string
	written   map[int64]int32 // leader epochs of their batches, where an in-sync replica could be asked
	end       int64           // behind the last of them
	deleted   int64           // up to here an administrator asked for deletion
	latest    map[int32]int64
	sent      map[string]bool
	once      map[string]bool // values of idempotent producers
	forgiven  bool            // its only replica lost its power, or the log of an unclean leader was not seen yet
	lossy     bool            // that happened at least once
	begins    int32           // the epoch of the last unclean election: what was committed before it may be lost
	elected   bool            // uncleanly, and the log of who leads from then on was not seen yet
}

func (s *Sim) incarnation(tp controller.TopicPartition) incarnation {
	return incarnation{tp, s.facts.made[tp.Topic]}
}

func (s *Sim) history(in incarnation) *history {
	h := s.ledger[in]
	if h == nil {
		h = &history{committed: map[int64]string{}, written: map[int64]int32{}, latest: map[int32]int64{}, sent: map[string]bool{}, once: map[string]bool{}}
		s.ledger[in] = h
	}
	return h
}

// exists tells whether a partition is there and not about to be deleted.
func (s *Sim) exists(in incarnation) (zkstate.TopicAssignment, bool) {
	a, _, ok := s.topicNode(in.tp.Topic)
	_, has := a.Partitions[in.tp.Partition]
	return a, ok && has && s.facts.made[in.tp.Topic] == in.made && s.zk.leader.nodes[zkstate.DeleteTopicPath(in.tp.Topic)] == nil
}

// epochAt is the leader epoch that a node believes a partition to be in.
func (n *node) epochAt(tp controller.TopicPartition) int32 {
	status, _ := n.broker.status(tp)
	return status.LeaderEpoch
}

// commits notes a record that from now on must be there, and that every in-sync replica has it (I1, I6).
func (s *Sim) commits(in incarnation, epoch int32, offset int64, value, how string) {
	a, ok := s.exists(in)
	h := s.history(in)
	if !ok || epoch < h.begins {
		return
	}
	if before, known := h.committed[offset]; known {
		s.check(before == value, "I1: %s offset %d is committed as %q and, %s, as %q", in.tp, offset, before, how, value)
		return
	}
	s.Done.Committed++
	h.committed[offset] = value
	if offset < h.end {
		return
	}
	h.end = offset + 1
	state := s.facts.states[zkstate.PartitionStatePath(in.tp.Topic, in.tp.Partition)]
	for _, id := range state.ISR {
		n := s.nodes[id-1]
		if !n.up || n.broker.failed || s.recoversFromPowerCut(n) {
			continue
		}
		log := n.broker.logOf(in.tp, a.ID)
		if log != nil && log.EndOffset() > offset {
			if written, known := log.EpochAt(offset); known {
				h.written[offset] = written
			}
		}
		s.check(log != nil && log.EndOffset() > offset, "I6: %s offset %d is committed (%s) and in-sync replica %d does not have it: %s", in.tp, offset, how, id, ends{log})
	}
}

// ends tells where a log begins and ends, if somebody wants to read it.
type ends struct{ *commitlog.Log }

func (e ends) String() string {
	if e.Log == nil {
		return "it has no log"
	}
	return fmt.Sprintf("its log is %d to %d, high watermark %d", e.StartOffset(), e.EndOffset(), e.HighWatermark())
}

// entry is one record of a replica.
type entry struct {
	offset int64
	epoch  int32
	value  string
	// control tells that it is a marker and no record of a client.
	control bool
}

// read gives all records of a log.
func read(log *commitlog.Log) ([]entry, error) {
	var out []entry
	end := log.EndOffset()
	for at := log.StartOffset(); at < end; {
		r, err := log.Read(at, commitlog.ReadOptions{MaxBytes: 1 << 20, MinOneBatch: true, UpTo: end})
		if err != nil {
			return out, err
		}
		buf, err := r.Range.ReadAll()
		r.Range.Release()
		if err != nil {
			return out, err
		}
		before := at
		if out, at, err = unpack(out, buf, at); err != nil {
			return out, err
		}
		if at == before {
			return out, fmt.Errorf("nothing at offset %d of a log that ends at %d", at, end)
		}
	}
	return out, nil
}

// unpack adds the records of some batches that are at an offset or behind it.
func unpack(out []entry, buf []byte, from int64) ([]entry, int64, error) {
	for len(buf) > 0 {
		b, rest, err := record.Next(buf)
		if err != nil {
			return out, from, err
		}
		for r, err := range b.Records(record.Limits{MaxDecompressed: 1 << 20}) {
			if err != nil {
				return out, from, err
			}
			if r.Offset >= from {
				out = append(out, entry{r.Offset, b.PartitionLeaderEpoch(), string(r.Value), b.IsControl()})
			}
		}
		from, buf = max(from, b.LastOffset()+1), rest
	}
	return out, from, nil
}

// takesLead looks at the log of a broker that becomes leader: all that is committed is in it (I1).
func (s *Sim) takesLead(n *node, tp commitlog.TopicPartition, log *commitlog.Log, epoch int32) {
	in := s.incarnation(controller.TopicPartition(tp))
	a, ok := s.exists(in)
	if h := s.history(in); ok && h.elected && epoch >= h.begins && n.broker.logOf(in.tp, a.ID) == log {
		entries, _ := read(log) // holdsAll tells of errors
		h.forget(h.parting(entries, log.EndOffset()))
		h.elected = false
	}
	state := s.facts.states[zkstate.PartitionStatePath(tp.Topic, tp.Partition)]
	if !ok || n.broker.logOf(in.tp, a.ID) != log || state.Leader != n.id || state.LeaderEpoch != epoch {
		return
	}
	s.ledIn(zkstate.PartitionStatePath(tp.Topic, tp.Partition), tp.Topic, epoch, n.id)
	s.Done.Leads++
	s.holdsAll(n, in, log)
}

func (s *Sim) holdsAll(n *node, in incarnation, log *commitlog.Log) []entry {
	h := s.history(in)
	if h.forgiven {
		h.forget(log.EndOffset())
		h.forgiven = s.recoversFromPowerCut(n)
	}
	entries, err := read(log)
	if log.Err() != nil || n.broker.failed {
		return nil
	}
	s.check(err == nil, "I17: node %d cannot read its log of %s: %v", n.id, in.tp, err)
	s.check(log.StartOffset() <= h.deleted, "I1: node %d begins its log of %s at %d, and only what is below %d may be deleted", n.id, in.tp, log.StartOffset(), h.deleted)
	s.check(log.EndOffset() >= h.end, "I1: node %d leads %s with a log that ends at %d; committed is all up to %d", n.id, in.tp, log.EndOffset(), h.end)
	have := 0
	for _, e := range entries {
		if value, committed := h.committed[e.offset]; committed {
			have++
			s.check(value == e.value, "I1: %s offset %d is committed as %q, and leader %d has %q", in.tp, e.offset, value, n.id, e.value)
		}
	}
	if have < len(h.committed) {
		for _, offset := range sortedOffsets(h.committed) {
			if offset >= log.StartOffset() && !slices.ContainsFunc(entries, func(e entry) bool { return e.offset == offset }) {
				s.check(false, "I1: leader %d lost %s offset %d, committed as %q", n.id, in.tp, offset, h.committed[offset])
			}
		}
	}
	return entries
}

// parting is the offset up to which the log of an unclean leader has what was committed: its end, or where another leader
// had written something else, for who is elected may have been away since before that, and may have more. What one leader
// wrote is the same in every log: such a difference is no parting, and is not forgiven.
func (h *history) parting(entries []entry, end int64) int64 {
	for _, e := range entries {
		value, committed := h.committed[e.offset]
		written, known := h.written[e.offset]
		if committed && value != e.value && !(known && written == e.epoch) {
			return e.offset
		}
	}
	return end
}

// forget drops what is behind an offset, up to which a log that begins anew has all.
func (h *history) forget(end int64) {
	for _, offset := range sortedOffsets(h.committed) {
		if offset >= end {
			delete(h.committed, offset)
			delete(h.written, offset)
		}
	}
	h.end, h.forgiven = min(h.end, end), false
	clear(h.latest)
}

func sortedOffsets(m map[int64]string) []int64 {
	out := make([]int64, 0, len(m))
	for o := range m {
		out = append(out, o)
	}
	slices.Sort(out)
	return out
}

// marks: what holds of every replica at every step (I2).
func (s *Sim) marks() {
	for _, n := range s.nodes {
		if !n.up || n.broker.logs == nil || n.broker.failed {
			continue
		}
		for _, p := range n.broker.replicas.All() {
			if log := p.Log(); log != nil {
				s.check(log.StartOffset() <= log.HighWatermark() && log.HighWatermark() <= log.EndOffset() && log.LastStableOffset() <= log.HighWatermark(),
					"I2: node %d, %s: %s, last stable %d", n.id, p.TP(), ends{log}, log.LastStableOffset())
			}
		}
	}
}

// planInspection looks into all logs from time to time.
func (s *Sim) planInspection() {
	s.w.in(700e6, func() {
		s.inspect()
		s.planInspection()
	})
}

// inspect compares the replicas of every partition with each other and with what was promised (I1, I4, I10, I12).
func (s *Sim) inspect() {
	s.deeds.read()
	for _, name := range s.topicNames() {
		a, _, ok := s.topicNode(name)
		if !ok {
			continue
		}
		for p := range int32(len(a.Partitions)) {
			s.inspectPartition(s.incarnation(controller.TopicPartition{Topic: name, Partition: p}))
		}
	}
}

func (s *Sim) inspectPartition(in incarnation) {
	a, ok := s.exists(in)
	if !ok {
		return
	}
	state := s.facts.states[zkstate.PartitionStatePath(in.tp.Topic, in.tp.Partition)]
	internal := in.tp.Topic == offsetsTopic || in.tp.Topic == transactionTopic
	var first []entry
	var whose int32
	for _, n := range s.nodes {
		if !n.up || n.broker.failed {
			continue
		}
		log := n.broker.logOf(in.tp, a.ID)
		if log == nil || log.Err() != nil {
			continue
		}
		status, hosted := n.broker.status(in.tp)
		var entries []entry
		if hosted && status.IsLeader && state.Leader == n.id && state.LeaderEpoch == status.LeaderEpoch {
			entries = s.holdsAll(n, in, log)
			s.once(n, in, entries)
		} else {
			entries, _ = read(log)
		}
		for _, e := range entries {
			s.check(internal || e.control || s.history(in).sent[e.value], "I18: node %d has %q at offset %d of %s, and nobody sent it to this topic", n.id, e.value, e.offset, in.tp)
		}
		s.epochsOf(n, in, log, entries)
		if first != nil {
			s.match(in, whose, first, n.id, entries)
		}
		if len(entries) >= len(first) {
			first, whose = entries, n.id
		}
	}
}

// match: where two logs have one epoch at one offset, all before it is equal (I4).
func (s *Sim) match(in incarnation, x int32, xs []entry, y int32, ys []entry) {
	i, j := len(xs)-1, len(ys)-1
	same := false
	for i >= 0 && j >= 0 {
		switch {
		case xs[i].offset > ys[j].offset:
			i--
			continue
		case xs[i].offset < ys[j].offset:
			j--
			continue
		}
		same = same || xs[i].epoch == ys[j].epoch
		s.check(!same || xs[i] == ys[j], "I4: %s offset %d is %v at %d and %v at %d, and they agree further on", in.tp, xs[i].offset, xs[i], x, ys[j], y)
		i, j = i-1, j-1
	}
}

// once: no record of an idempotent producer is there twice (I12).
func (s *Sim) once(n *node, in incarnation, entries []entry) {
	h := s.history(in)
	seen := map[string]int64{}
	for _, e := range entries {
		if before, twice := seen[e.value]; twice && h.once[e.value] {
			s.check(false, "I12: %s has %q at offsets %d and %d of leader %d", in.tp, e.value, before, e.offset, n.id)
		}
		seen[e.value] = e.offset
	}
}

// epochsOf: epochs never fall, and the cache of epochs says of each where it ends (I10).
func (s *Sim) epochsOf(n *node, in incarnation, log *commitlog.Log, entries []entry) {
	for i, e := range entries {
		last := i == len(entries)-1
		if i > 0 {
			s.check(e.epoch >= entries[i-1].epoch, "I10: node %d, %s: epoch %d follows epoch %d at offset %d", n.id, in.tp, e.epoch, entries[i-1].epoch, e.offset)
		}
		if !last && entries[i+1].epoch == e.epoch {
			continue
		}
		want := log.EndOffset()
		if !last {
			want = entries[i+1].offset
		}
		found, end := log.EndOffsetForEpoch(e.epoch)
		s.check(found == e.epoch && end == want, "I10: node %d, %s: epoch %d ends at %d, the cache says epoch %d ends at %d", n.id, in.tp, e.epoch, want, found, end)
	}
}
