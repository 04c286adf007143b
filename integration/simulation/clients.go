package simulation

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/controller"
	"barnabas/zkstate"
)

// producer writes to all partitions that there are, one batch at a time to each.
type producer struct {
	s    *Sim
	id   int
	acks int16
	sent int
	to   map[incarnation]*stream
}

// stream is a producer's way to one partition. A batch is repeated until its fate is known.
type stream struct {
	pid     int64
	seq     int32
	values  []string // of the batch on its way; nil: none
	started time.Duration
	attempt int
}

const clientTimeout = 1500 * time.Millisecond

func (s *Sim) startClients() {
	for i := range 2 + s.w.rand.IntN(2) {
		p := &producer{s: s, id: i, acks: -1, to: map[incarnation]*stream{}}
		if i == 2 {
			p.acks = 1
		}
		s.producers = append(s.producers, p)
		p.again()
	}
	for range 2 {
		c := &consumer{s: s, at: map[incarnation]int64{}}
		s.consumers = append(s.consumers, c)
		c.again()
	}
}

// viaClient carries something between a client and a node: late or never.
func (s *Sim) viaClient(n *node, deliver func()) {
	delay := s.w.between(200*time.Microsecond, 5*time.Millisecond)
	if !s.calm {
		if s.w.chance(s.faults.lose) {
			return
		}
		if s.w.chance(s.faults.delay) {
			delay = s.w.between(0, time.Second)
		}
	}
	s.w.in(delay, func() {
		if n.up {
			n.atLife(n.life, deliver)
		}
	})
}

func (p *producer) again() {
	p.s.w.in(p.s.w.between(10*time.Millisecond, 80*time.Millisecond), func() {
		if p.s.calm {
			return
		}
		p.write()
		p.again()
	})
}

func (p *producer) write() {
	tp, ok := p.s.partitionAmong(p.s.written())
	in := p.s.incarnation(tp)
	if _, exists := p.s.exists(in); !ok || !exists {
		return
	}
	st := p.to[in]
	if st == nil {
		p.s.pids++
		st = &stream{pid: p.s.pids}
		p.to[in] = st
	}
	if st.values != nil {
		return
	}
	for range 1 + p.s.w.rand.IntN(3) {
		p.sent++
		value := fmt.Sprintf("p%d-%d", p.id, p.sent)
		st.values = append(st.values, value)
		p.s.history(in).sent[value] = true
		if p.acks == -1 {
			p.s.history(in).once[value] = true
		}
	}
	st.started = p.s.w.now
	p.send(in, st)
}

func (p *producer) send(in incarnation, st *stream) {
	s := p.s
	if _, exists := s.exists(in); !exists {
		delete(p.to, in)
		return
	}
	st.attempt++
	mine := st.attempt
	settled := false
	retry := func() {
		if settled || st.attempt != mine {
			return
		}
		settled = true
		s.w.in(s.w.between(20*time.Millisecond, 150*time.Millisecond), func() { p.send(in, st) })
	}
	s.w.in(clientTimeout, retry)
	leader := s.leaderFor(in.tp)
	if leader == nil {
		return
	}
	records := p.batch(st)
	s.viaClient(leader, func() {
		if leader.broker.logs == nil || s.facts.made[in.tp.Topic] != in.made {
			return
		}
		life := leader.life
		acks := p.acks
		if s.planted("acknowledged before it is committed") {
			acks = 1
		}
		leader.broker.replicas.Produce(&partition.ProduceRequest{Acks: acks, Timeout: farAway, Version: 9, Partitions: []partition.ProducePartition{
			{Topic: in.tp.Topic, Partition: in.tp.Partition, Records: records}}}, func(rs []partition.ProduceResult) {
			if leader.life != life || leader.broker.failed {
				return
			}
			r, newest, epoch := rs[0], s.leadsNow(leader, in), leader.epochAt(in.tp)
			if r.Err == nil && p.acks == -1 {
				s.judgeISR(leader, in)
			}
			s.viaClientBack(leader, func() {
				if settled || st.attempt != mine || st.values == nil {
					return
				}
				if r.Err != nil {
					p.refused(in, st, r.Err, newest, retry)
					return
				}
				settled = true
				p.acked(in, st, epoch, r.BaseOffset)
			})
		})
		leader.broker.afterwards()
	})
}

// viaClientBack carries an answer to a client, which is always there.
func (s *Sim) viaClientBack(_ *node, deliver func()) {
	if !s.calm && s.w.chance(s.faults.lose) {
		return
	}
	s.w.in(s.w.between(200*time.Microsecond, 5*time.Millisecond), deliver)
}

func (p *producer) batch(st *stream) []byte {
	o := record.BuilderOptions{}
	if p.acks == -1 && !p.s.planted("repeats are not noticed") {
		o.Producer = &record.Producer{ID: st.pid, BaseSequence: st.seq}
	}
	b := record.NewBuilder(o)
	for _, v := range st.values {
		b.Append(p.s.wallClock().UnixMilli(), nil, []byte(v))
	}
	out, err := b.Build()
	if err != nil {
		panic(err)
	}
	return out
}

// refused: a leader that was replaced may not know yet what its successor acknowledged; the leader must. (I11)
func (p *producer) refused(in incarnation, st *stream, err error, newest bool, retry func()) {
	switch {
	case !newest:
		retry()
	case errors.Is(err, kerr.OutOfOrderSequenceNumber), errors.Is(err, kerr.InvalidProducerEpoch), errors.Is(err, kerr.UnknownProducerID), errors.Is(err, kerr.DuplicateSequenceNumber):
		if p.s.history(in).lossy {
			delete(p.to, in)
			return
		}
		p.s.check(false, "I11: producer %d is told %v for sequence %d of %s", p.id, err, st.seq, in.tp)
	default:
		retry()
	}
}

func (p *producer) acked(in incarnation, st *stream, epoch int32, base int64) {
	p.s.Done.Acked += len(st.values)
	if p.acks == -1 {
		for i, v := range st.values {
			p.s.commits(in, epoch, base+int64(i), v, "acknowledged")
		}
	}
	st.seq += int32(len(st.values))
	st.values = nil
}

// leadsNow tells whether a node leads a partition in the newest epoch.
func (s *Sim) leadsNow(n *node, in incarnation) bool {
	status, ok := n.broker.status(in.tp)
	state := s.facts.states[zkstate.PartitionStatePath(in.tp.Topic, in.tp.Partition)]
	return ok && status.IsLeader && state.Leader == n.id && state.LeaderEpoch == status.LeaderEpoch
}

// judgeISR: an acknowledgement of all is one of enough (H14).
func (s *Sim) judgeISR(n *node, in incarnation) {
	status, ok := n.broker.status(in.tp)
	if !ok {
		return
	}
	enough := min(int(s.logConfig.MinInsync), len(status.Replicas))
	s.check(len(status.ISR) >= enough || status.InFlight, "H14: node %d acknowledges for all with ISR %v of %s", n.id, status.ISR, in.tp)
}

// leaderFor is the leader that some broker's metadata name.
func (s *Sim) leaderFor(tp controller.TopicPartition) *node {
	n := pick(s.w, s.nodes)
	if !n.up || n.paused {
		return nil
	}
	if m, known := n.broker.metadata[tp]; known && m.Leader > 0 {
		return s.nodes[m.Leader-1]
	}
	return nil
}

// consumer reads all partitions, at leaders and at followers.
type consumer struct {
	s  *Sim
	at map[incarnation]int64
}

func (c *consumer) again() {
	c.s.w.in(c.s.w.between(20*time.Millisecond, 100*time.Millisecond), func() {
		c.poll()
		c.again()
	})
}

func (c *consumer) poll() {
	s := c.s
	tp, ok := s.somePartition()
	in := s.incarnation(tp)
	a, exists := s.exists(in)
	if !ok || !exists {
		return
	}
	n := s.leaderFor(tp)
	follower := s.w.chance(0.3)
	if follower {
		n = s.nodes[pick(s.w, a.Partitions[tp.Partition].Replicas)-1]
	}
	if n == nil || !n.up {
		return
	}
	s.viaClient(n, func() {
		if n.broker.logs == nil || n.broker.epoch == 0 || n.broker.failed || n.broker.logOf(tp, a.ID) == nil || s.facts.made[tp.Topic] != in.made {
			return
		}
		if s.w.chance(0.2) {
			c.askLatest(n, in)
		}
		c.fetch(n, in)
	})
}

func (c *consumer) fetch(n *node, in incarnation) {
	s := c.s
	ask := partition.FetchPartition{Topic: in.tp.Topic, Partition: in.tp.Partition, FetchOffset: c.at[in], LogStartOffset: -1, MaxBytes: 4 << 10, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1}
	if s.planted("consumers read to the log end") {
		if log := n.broker.logs.Get(commitlog.TopicPartition(in.tp)); log != nil {
			if r, err := log.Read(c.at[in], commitlog.ReadOptions{MaxBytes: 4 << 10, MinOneBatch: true, UpTo: log.EndOffset()}); err == nil {
				buf, _ := r.Range.ReadAll()
				r.Range.Release()
				c.shown(n, in, buf)
			}
		}
		return
	}
	n.broker.replicas.Fetch(&partition.FetchRequest{ReplicaID: partition.ConsumerReplica, ReplicaEpoch: -1, Version: 12, MaxBytes: 8 << 10,
		Partitions: []partition.FetchPartition{ask}}, func(rs []partition.FetchResult) {
		r := &rs[0]
		defer r.Records.Release()
		if errors.Is(r.Err, kerr.OffsetOutOfRange) {
			if log := n.broker.logs.Get(commitlog.TopicPartition(in.tp)); log != nil && c.at[in] < log.StartOffset() {
				c.at[in] = log.StartOffset()
			} else if log != nil && s.unclean {
				c.at[in] = min(c.at[in], log.EndOffset()) // what was there is lost
			}
			return
		}
		if r.Err != nil || r.Records.Length == 0 {
			return
		}
		buf, err := r.Records.ReadAll()
		if err == nil {
			c.shown(n, in, buf)
		}
	})
}

func (c *consumer) shown(n *node, in incarnation, buf []byte) {
	entries, next, err := unpack(nil, buf, c.at[in])
	if errors.Is(err, io.ErrUnexpectedEOF) && next > c.at[in] {
		err = nil // the limit cuts through a batch that is not the first
	}
	c.s.check(err == nil, "I17: node %d gives records of %s that cannot be read: %v", n.id, in.tp, err)
	for _, e := range entries {
		if c.s.unclean && !c.s.leadsNow(n, in) {
			break // a follower that has more than an unclean leader shows it until it is cut
		}
		c.s.commits(in, n.epochAt(in.tp), e.offset, e.value, fmt.Sprintf("shown by %d", n.id))
	}
	c.s.Done.Read += len(entries)
	c.at[in] = next
}

// askLatest: the end that leaders tell never goes back from one leader epoch to a later one (I3, H13).
func (c *consumer) askLatest(n *node, in incarnation) {
	s := c.s
	status, ok := n.broker.status(in.tp)
	if !ok || !status.IsLeader {
		return
	}
	_, latest, epoch, err := n.broker.replicas.ListOffset(in.tp.Topic, in.tp.Partition, partition.TimeLatest, false, partition.ConsumerReplica, -1, 7)
	if s.planted("the latest offset at any time") {
		latest, epoch, err = status.HighWatermark, status.LeaderEpoch, nil
	}
	if err != nil {
		return
	}
	h := s.history(in)
	for _, e := range sortedKeys(h.latest) {
		s.check(e > epoch || h.lossy || h.latest[e] <= latest, "I3: the latest offset of %s was %d in epoch %d and is %d in epoch %d", in.tp, h.latest[e], e, latest, epoch)
	}
	h.latest[epoch] = max(h.latest[epoch], latest)
}

// deleteRecords is what an administrator does with kafka-delete-records.
func deleteRecords(s *Sim) {
	tp, ok := s.somePlainPartition()
	in := s.incarnation(tp)
	if _, exists := s.exists(in); !ok || !exists {
		return
	}
	n := s.leaderFor(tp)
	if n == nil || !n.up || n.paused || n.broker.logs == nil || n.broker.failed {
		return
	}
	p := n.broker.replicas.Partition(tp.Topic, tp.Partition)
	state := s.facts.states[zkstate.PartitionStatePath(tp.Topic, tp.Partition)]
	if p == nil || p.Log() == nil || state.Leader != n.id {
		return
	}
	hw := p.Log().HighWatermark()
	if hw == 0 {
		return
	}
	offset := s.w.rand.Int64N(hw) + 1
	h := s.history(in)
	h.deleted = max(h.deleted, offset)
	s.w.tell("records of %s below %d are deleted", tp, offset)
	n.broker.replicas.DeleteRecords(map[commitlog.TopicPartition]int64{commitlog.TopicPartition(tp): offset}, farAway, func(map[commitlog.TopicPartition]partition.DeleteRecordsResult) {})
	n.broker.afterwards()
}
