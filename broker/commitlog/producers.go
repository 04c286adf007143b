package commitlog

// Producer state: what the log remembers of each idempotent or transactional producer, so that a repeated batch is
// answered with the offsets it got the first time and a gap is refused (KIP-98, KIP-360).
//
//   - State changes only by apply, and apply is called only when the batches are in the log. plan works on copies.
//   - The state at an offset equals a replay of the log up to it, expiry aside.
//   - An unknown producer may begin with any sequence: its state may have expired, or its records may be deleted (BR-010).
//
// Nothing here does I/O or knows the time.

import (
	"fmt"
	"sort"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
)

// batchesKept is how many batches of a producer are remembered: the client has at most five in flight.
const batchesKept = 5

// noOffset stands for an offset that is not known or does not exist.
const noOffset int64 = -1

// batchMeta is one remembered batch.
type batchMeta struct {
	lastSeq    int32
	delta      int32 // last offset minus first offset
	lastOffset int64
	timestamp  int64
}

func metaOf(b record.Batch) batchMeta {
	return batchMeta{lastSeq: b.LastSequence(), delta: b.LastOffsetDelta(), lastOffset: b.LastOffset(), timestamp: b.MaxTimestamp()}
}

func (b batchMeta) firstSeq() int32 {
	if b.lastSeq == record.NoSequence {
		return record.NoSequence
	}
	return record.AddSequence(b.lastSeq, -b.delta)
}

func (b batchMeta) firstOffset() int64 { return b.lastOffset - int64(b.delta) }

// producer is the state of one producer id.
type producer struct {
	id               int64
	epoch            int16
	coordinatorEpoch int32
	lastTimestamp    int64
	txnStart         int64 // first offset of the open transaction; noOffset when there is none
	count            int8
	batches          [batchesKept]batchMeta // oldest first
}

func newProducer(id int64) producer {
	return producer{
		id: id, epoch: record.NoProducerEpoch, coordinatorEpoch: -1,
		lastTimestamp: record.NoTimestamp, txnStart: noOffset,
	}
}

// last returns the newest batch, and false when none is remembered.
func (p *producer) last() (batchMeta, bool) {
	if p.count == 0 {
		return batchMeta{lastSeq: record.NoSequence, lastOffset: noOffset}, false
	}
	return p.batches[p.count-1], true
}

func (p *producer) setEpoch(epoch int16) {
	if p.epoch != epoch {
		p.epoch = epoch
		p.count = 0
	}
}

func (p *producer) add(b batchMeta) {
	if int(p.count) == len(p.batches) {
		copy(p.batches[:], p.batches[1:])
		p.count--
	}
	p.batches[p.count] = b
	p.count++
}

// duplicate finds the remembered batch that has exactly this range of sequences.
func (p *producer) duplicate(epoch int16, first, last int32) (batchMeta, bool) {
	if p.epoch != epoch {
		return batchMeta{}, false
	}
	for _, b := range p.batches[:p.count] {
		if b.firstSeq() == first && b.lastSeq == last {
			return b, true
		}
	}
	return batchMeta{}, false
}

// openTxn is a transaction whose records are in the log.
type openTxn struct {
	producerID int64
	first      Position
	last       int64 // offset of the marker; noOffset while the transaction is undecided
}

// endedTxn is a transaction that a marker has decided.
type endedTxn struct {
	producerID  int64
	first, last int64
	aborted     bool
}

// verification is the state of a producer whose transaction is being asked about at its coordinator (KIP-890).
type verification struct {
	guard     *VerificationGuard
	sequence  int32
	epoch     int16
	timestamp int64
}

// producers is the state of all producers of one log. The zero value is empty.
type producers struct {
	byID          map[int64]*producer
	open          []openTxn // undecided, by first offset
	unreplicated  []openTxn // decided, but the marker is not below the high watermark yet; by first offset
	verifications map[int64]*verification
	end           int64 // the state covers the log up to here
}

// change is what one append does to the state. It holds copies: dropping it changes nothing.
type change struct {
	touched []*producer
	started []openTxn
	ended   []endedTxn
	decided []int64 // producers that wrote into a transaction or ended one: their verification is used up
}

func (c *change) find(id int64) *producer {
	for _, p := range c.touched {
		if p.id == id {
			return p
		}
	}
	return nil
}

// duplicate tells whether a client's batch is one of the remembered ones.
func (s *producers) duplicate(b record.Batch) (batchMeta, bool) {
	p := s.byID[b.ProducerID()]
	if p == nil || b.IsControl() {
		return batchMeta{}, false
	}
	return p.duplicate(b.ProducerEpoch(), b.BaseSequence(), b.LastSequence())
}

// plan works out what a batch with its final offsets does, on top of what c already holds. at is the place of the batch.
func (s *producers) plan(c *change, b record.Batch, at Position, origin Origin) error {
	id := b.ProducerID()
	if id == record.NoProducerID {
		return nil
	}
	p := c.find(id)
	fresh := p == nil
	if fresh {
		copied := newProducer(id)
		if known := s.byID[id]; known != nil {
			copied = *known
		}
		p = &copied
	}
	err := error(nil)
	if b.IsControl() {
		err = c.endTxn(p, b, origin)
	} else {
		err = c.data(p, s.verifications[id], b, at, origin)
	}
	if err != nil {
		return err
	}
	if fresh {
		c.touched = append(c.touched, p)
	}
	if b.IsTransactional() {
		c.decided = append(c.decided, id)
	}
	return nil
}

func (c *change) data(p *producer, v *verification, b record.Batch, at Position, origin Origin) error {
	if err := checkEpoch(p, b.ProducerEpoch(), b.BaseOffset(), origin); err != nil {
		return err
	}
	if origin == Client {
		if err := checkSequence(p, v, b); err != nil {
			return err
		}
	}
	if p.txnStart != noOffset && !b.IsTransactional() && origin != Replication {
		return fmt.Errorf("%w: producer %d has a transaction open since offset %d and sent records outside of it",
			kerr.InvalidTxnState, p.id, p.txnStart)
	}
	p.setEpoch(b.ProducerEpoch())
	p.add(metaOf(b))
	p.lastTimestamp = b.MaxTimestamp()
	if b.IsTransactional() && p.txnStart == noOffset {
		p.txnStart = b.BaseOffset()
		c.started = append(c.started, openTxn{producerID: p.id, first: at, last: noOffset})
	}
	return nil
}

func (c *change) endTxn(p *producer, b record.Batch, origin Origin) error {
	marker, ts, found, err := endTxnMarker(b)
	if err != nil || !found {
		return err
	}
	if err := checkEpoch(p, b.ProducerEpoch(), b.BaseOffset(), origin); err != nil {
		return err
	}
	if p.coordinatorEpoch > marker.CoordinatorEpoch && origin != Replication {
		return fmt.Errorf("%w: marker for producer %d comes from coordinator epoch %d, the log has seen %d",
			kerr.TransactionCoordinatorFenced, p.id, marker.CoordinatorEpoch, p.coordinatorEpoch)
	}
	if p.txnStart != noOffset {
		c.ended = append(c.ended, endedTxn{
			producerID: p.id, first: p.txnStart, last: b.BaseOffset(),
			aborted: marker.Type == record.Abort,
		})
	}
	p.setEpoch(b.ProducerEpoch())
	p.coordinatorEpoch = marker.CoordinatorEpoch
	p.txnStart = noOffset
	p.lastTimestamp = ts
	return nil
}

// endTxnMarker reads the marker of a control batch; found is false for a control batch that has none.
func endTxnMarker(b record.Batch) (m record.EndTxnMarker, ts int64, found bool, err error) {
	for r, err := range b.Records(record.Limits{}) {
		if err != nil {
			return m, 0, false, fmt.Errorf("%w: control batch at offset %d: %w", kerr.CorruptMessage, b.BaseOffset(), err)
		}
		m, found, err = record.ParseEndTxnMarker(r)
		if err != nil {
			return m, 0, false, fmt.Errorf("%w: control record at offset %d: %w", kerr.CorruptMessage, r.Offset, err)
		}
		return m, r.Timestamp, found, nil
	}
	return m, 0, false, nil
}

func checkEpoch(p *producer, epoch int16, offset int64, origin Origin) error {
	// A follower takes what the leader has taken.
	if epoch >= p.epoch || origin == Replication {
		return nil
	}
	return fmt.Errorf("%w: epoch %d of producer %d at offset %d is older than %d",
		kerr.InvalidProducerEpoch, epoch, p.id, offset, p.epoch)
}

func checkSequence(p *producer, v *verification, b record.Batch) error {
	first := b.BaseSequence()
	if v != nil && first > v.sequence { // whatever its epoch: one that is behind that of the verification is refused too
		return fmt.Errorf("%w: producer %d sent sequence %d before %d, which it sent earlier",
			kerr.OutOfOrderSequenceNumber, p.id, first, v.sequence)
	}
	if p.epoch == record.NoProducerEpoch {
		return nil
	}
	if b.ProducerEpoch() != p.epoch {
		if first == 0 {
			return nil
		}
		return fmt.Errorf("%w: producer %d begins epoch %d with sequence %d, not 0",
			kerr.OutOfOrderSequenceNumber, p.id, b.ProducerEpoch(), first)
	}
	last, _ := p.last()
	next := int32(0)
	if last.lastSeq != record.NoSequence {
		next = record.AddSequence(last.lastSeq, 1)
	}
	if first == next {
		return nil
	}
	return fmt.Errorf("%w: producer %d sent sequence %d, expected %d",
		kerr.OutOfOrderSequenceNumber, p.id, first, next)
}

// apply makes a change real; end is the log's end behind the batches. It returns the entries for the transaction index.
func (s *producers) apply(c *change, end int64) []abortedTx {
	for _, p := range c.touched {
		if s.byID == nil {
			s.byID = map[int64]*producer{}
		}
		if known := s.byID[p.id]; known != nil {
			*known = *p
		} else {
			s.byID[p.id] = p
		}
	}
	for _, t := range c.started {
		s.open = insertTxn(s.open, t)
	}
	var aborted []abortedTx
	for _, t := range c.ended {
		if t.aborted {
			aborted = append(aborted, abortedTx{t.producerID, t.first, t.last, s.stableAfter(t)})
		}
		s.complete(t)
	}
	for _, id := range c.decided {
		delete(s.verifications, id)
	}
	s.end = end
	return aborted
}

func (s *producers) complete(t endedTxn) {
	for i, o := range s.open {
		if o.first.Offset == t.first && o.producerID == t.producerID {
			s.open = append(s.open[:i:i], s.open[i+1:]...)
			o.last = t.last
			s.unreplicated = insertTxn(s.unreplicated, o)
			return
		}
	}
}

func insertTxn(txns []openTxn, t openTxn) []openTxn {
	i := sort.Search(len(txns), func(i int) bool { return txns[i].first.Offset > t.first.Offset })
	txns = append(txns, openTxn{})
	copy(txns[i+1:], txns[i:])
	txns[i] = t
	return txns
}

// stableAfter is the last stable offset once t is decided: where the oldest transaction of somebody else begins, else
// behind t's marker. It is what the transaction index keeps, so that a search knows when it has seen enough. Those that
// begin behind the marker, in the same append of a follower, are none of them.
func (s *producers) stableAfter(t endedTxn) int64 {
	for _, o := range s.open {
		if o.producerID != t.producerID && o.first.Offset < t.last {
			return o.first.Offset
		}
	}
	return t.last + 1
}

// firstUnstable is where the oldest transaction begins that is open or whose marker is not committed.
func (s *producers) firstUnstable() (Position, bool) {
	switch {
	case len(s.open) == 0 && len(s.unreplicated) == 0:
		return Position{}, false
	case len(s.open) == 0:
		return s.unreplicated[0].first, true
	case len(s.unreplicated) == 0 || s.open[0].first.Offset < s.unreplicated[0].first.Offset:
		return s.open[0].first, true
	}
	return s.unreplicated[0].first, true
}

// committed forgets the decided transactions whose marker lies below the high watermark.
func (s *producers) committed(highWatermark int64) {
	keep := s.unreplicated[:0]
	for _, t := range s.unreplicated {
		if t.last >= highWatermark {
			keep = append(keep, t)
		}
	}
	s.unreplicated = keep
}

// expire forgets producers that have been idle for expiration ms and have no transaction open.
func (s *producers) expire(nowMs, expirationMs int64) {
	for id, p := range s.byID {
		if p.txnStart == noOffset && nowMs-p.lastTimestamp >= expirationMs {
			delete(s.byID, id)
		}
	}
	for id, v := range s.verifications {
		if nowMs-v.timestamp >= expirationMs {
			delete(s.verifications, id)
		}
	}
}

// sorted lists the producers by id.
func (s *producers) sorted() []*producer {
	list := make([]*producer, 0, len(s.byID))
	for _, p := range s.byID {
		list = append(list, p)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].id < list[j].id })
	return list
}

// load puts the producers of a snapshot in place, except those that have expired.
func (s *producers) load(list []producer, end, nowMs, expirationMs int64) {
	*s = producers{verifications: s.verifications, end: end}
	for i := range list {
		p := list[i]
		if p.txnStart == noOffset && nowMs-p.lastTimestamp >= expirationMs {
			continue
		}
		if s.byID == nil {
			s.byID = make(map[int64]*producer, len(list))
		}
		s.byID[p.id] = &p
		if p.txnStart != noOffset {
			s.open = insertTxn(s.open, openTxn{
				producerID: p.id, first: Position{p.txnStart, noOffset, 0}, last: noOffset,
			})
		}
	}
}

// verify starts (or goes on with) the verification of a producer that has no transaction open here.
func (s *producers) verify(id int64, sequence int32, epoch int16, nowMs int64) *VerificationGuard {
	if p := s.byID[id]; p != nil && p.txnStart != noOffset {
		return nil
	}
	v := s.verifications[id]
	if v == nil {
		if s.verifications == nil {
			s.verifications = map[int64]*verification{}
		}
		v = &verification{guard: &VerificationGuard{producerID: id}, sequence: sequence, epoch: epoch, timestamp: nowMs}
		s.verifications[id] = v
	}
	if epoch > v.epoch || epoch == v.epoch && sequence < v.sequence {
		v.epoch, v.sequence = epoch, sequence
	}
	return v.guard
}

// verified tells that guard is the one handed out for the producer and not used up since.
func (s *producers) verified(id int64, guard *VerificationGuard) bool {
	v := s.verifications[id]
	return v != nil && guard != nil && v.guard == guard
}
