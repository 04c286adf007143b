package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/group"
	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/txn"
	"barnabas/controller"
)

// The topics that transformers read and write. They are as durable as the coordinators' own.
const (
	inputTopic        = "input"
	outputTopic       = "output"
	durablePartitions = 2
)

// transformer is the transactional part of a group's member: it reads some records, writes one for each of them, and
// commits both how far it read and what it wrote, in one transaction.
type transformer struct {
	m        *member
	id       string
	producer txn.Producer
	ready    bool // it has a producer id and an epoch that nobody has fenced, as far as it knows
	busy     bool
	life     int
	seq      map[int32]int32 // next, by partition of the output
}

const transactionTimeout = 3 * time.Second

// forget is the end of its process.
func (t *transformer) forget() {
	t.life++
	t.ready, t.busy = false, false
}

// transform goes on with a partition of the input: one transaction.
func (t *transformer) transform(turn int, tp group.TopicPartition, next func()) {
	if t.busy { // with what it began in an earlier generation
		next()
		return
	}
	t.busy = true
	life := t.life
	over := func() {
		if t.life == life {
			t.busy = false
			if t.m.turn == turn {
				next()
			}
		}
	}
	if !t.ready {
		t.init(life, over)
		return
	}
	t.read(life, tp, func(entries []entry) {
		if len(entries) == 0 {
			over()
			return
		}
		w := &work{t: t, life: life, over: over, generation: t.m.generation, memberID: t.m.id, coordinator: t.m.coordinator}
		w.deed = t.m.s.deeds.begin(tp, entries, 1+t.m.s.w.rand.IntN(durablePartitions))
		w.write(entries)
	})
}

// init fences whoever has its transactional id, and ends what was left open. What is committed is asked for anew.
func (t *transformer) init(life int, over func()) {
	s := t.m.s
	if t.m.retired {
		over()
		return
	}
	viaConnection(t.m, s.leaderFor(coordinates(transactionTopic, t.id)), memberPatience, true, func(b *broker, reply func(txn.InitResult)) {
		req := &txn.InitRequest{ID: t.id, TimeoutMs: int32(transactionTimeout.Milliseconds())}
		b.coordinators.ofID(t.id, func(core *txn.Core, nowMs int64) {
			core.Init(nowMs, req, func(r txn.InitResult) {
				if r.Err == nil {
					s.deeds.given(t.id, r.Producer)
				}
				reply(r)
			})
		}, func(err error) { reply(txn.InitResult{Err: err}) })
	}, func(r txn.InitResult, came bool) {
		if t.life != life {
			return
		}
		if came && r.Err == nil {
			t.producer, t.ready, t.seq = r.Producer, true, map[int32]int32{}
			clear(t.m.known)
		}
		over()
	})
}

// read gives the next records of the input, as a consumer gets them.
func (t *transformer) read(life int, tp group.TopicPartition, then func([]entry)) {
	s, in, from := t.m.s, controller.TopicPartition(tp), t.m.at[tp]
	viaConnection(t.m, s.leaderFor(in), memberPatience, true, func(b *broker, reply func([]entry)) {
		ask := partition.FetchPartition{Topic: tp.Topic, Partition: tp.Partition, FetchOffset: from, LogStartOffset: -1, MaxBytes: 4 << 10, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1}
		b.replicas.Fetch(&partition.FetchRequest{ReplicaID: partition.ConsumerReplica, ReplicaEpoch: -1, Version: 12, MaxBytes: 8 << 10, ReadCommitted: true,
			Partitions: []partition.FetchPartition{ask}}, func(rs []partition.FetchResult) {
			buf, err := rs[0].Records.ReadAll()
			rs[0].Records.Release()
			if err != nil || rs[0].Err != nil {
				reply(nil)
				return
			}
			entries, _, _ := unpack(nil, buf, from)
			reply(entries)
		})
	}, func(entries []entry, _ bool) {
		if t.life != life {
			return
		}
		most := 1 + s.w.rand.IntN(4)
		if s.calm {
			most = 40
		}
		then(entries[:min(most, len(entries))])
	})
}

// work is one transaction underway.
type work struct {
	t           *transformer
	deed        *deed
	life        int
	over        func()
	generation  int32
	memberID    string
	coordinator *node
	closing     bool // the producer ends with this transaction
}

// write adds the partitions, writes the records and the offset, in one order or the other, and ends the transaction.
func (w *work) write(entries []entry) {
	records := func(then func()) {
		parts := w.deed.split(entries)
		var list []txn.TopicPartition
		for _, p := range sortedKeys(parts) {
			list = append(list, txn.TopicPartition{Topic: outputTopic, Partition: p})
		}
		w.add(list, func() { w.produce(sortedKeys(parts), parts, then) })
	}
	offset := func(then func()) {
		w.add([]txn.TopicPartition{txn.TopicPartition(coordinates(offsetsTopic, w.t.m.club.name))}, func() { w.commitOffset(then) })
	}
	s := w.t.m.s
	end := func() { w.end(s.calm || s.w.chance(0.85)) }
	if s.w.chance(0.5) {
		records(func() { offset(end) })
	} else {
		offset(func() { records(end) })
	}
}

// tries is how often a request is made before it has failed too often.
const tries = 6

// ask repeats a request until it is answered with success, fails for good, or has failed too often.
func (w *work) ask(left int, to func() *node, late bool, do func(b *broker, reply func(error)), then func(), failed func(err error, certain bool)) {
	s, certain := w.t.m.s, true
	var try func()
	try = func() {
		viaConnection(w.t.m, to(), memberPatience, late, do, func(err error, came bool) {
			certain = certain && came && !errors.Is(err, kerr.NotEnoughReplicasAfterAppend) && !errors.Is(err, kerr.NotLeaderForPartition) && !errors.Is(err, kerr.KafkaStorageError)
			left--
			switch {
			case w.t.life != w.life:
			case came && err == nil:
				then()
			case (!came || passes(err)) && left > 0:
				w.t.m.in(s.w.between(20*time.Millisecond, 150*time.Millisecond), try)
			default:
				failed(err, certain)
			}
		})
	}
	try()
}

// passes tells that a request may succeed when it is repeated.
func passes(err error) bool {
	for _, e := range []*kerr.Error{kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.ConcurrentTransactions, kerr.NotLeaderForPartition,
		kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut, kerr.KafkaStorageError, kerr.NetworkException, kerr.LeaderNotAvailable} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func fenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.InvalidProducerIDMapping)
}

func (w *work) coordinatorOfTransactions() *node {
	return w.t.m.s.leaderFor(coordinates(transactionTopic, w.t.id))
}

func (w *work) add(list []txn.TopicPartition, then func()) {
	t := w.t
	w.ask(tries, w.coordinatorOfTransactions, true, func(b *broker, reply func(error)) {
		req := &txn.PartitionsRequest{ID: t.id, Producer: t.producer, Partitions: list}
		t.m.s.plants.producer(t.id, &req.Producer)
		since := t.m.s.deeds.givenSoFar(t.id)
		b.coordinators.ofID(t.id, func(core *txn.Core, nowMs int64) {
			core.AddPartitions(nowMs, req, func(err error) {
				t.m.s.deeds.judgeFence(t, since, err, "adds partitions")
				reply(err)
			})
		}, reply)
	}, then, w.fail)
}

func (w *work) produce(left []int32, parts map[int32][]string, then func()) {
	if len(left) == 0 {
		then()
		return
	}
	t, p := w.t, left[0]
	in := t.m.s.incarnation(controller.TopicPartition{Topic: outputTopic, Partition: p})
	values, seq := parts[p], t.seq[p]
	for _, v := range values {
		t.m.s.history(in).sent[v], t.m.s.history(in).once[v] = true, true
	}
	producer := t.producer
	w.ask(pick(t.m.s.w, []int{1, tries}), func() *node { return t.m.s.leaderFor(in.tp) }, true, func(b *broker, reply func(error)) {
		as := producer
		t.m.s.plants.producer(t.id, &as)
		req := partition.ProducePartition{Topic: in.tp.Topic, Partition: p, Records: transactional(b.n, values, as, seq)}
		b.produceInTransaction(t.id, as, seq, req, func(r partition.ProduceResult) { reply(r.Err) })
	}, func() {
		t.seq[p] = seq + int32(len(values))
		w.produce(left[1:], parts, then)
	}, w.fail)
}

func transactional(n *node, values []string, p txn.Producer, seq int32) []byte {
	b := record.NewBuilder(record.BuilderOptions{Producer: &record.Producer{ID: p.ID, Epoch: p.Epoch, BaseSequence: seq, Transactional: true}})
	for _, v := range values {
		b.Append(n.s.wallClock().UnixMilli(), nil, []byte(v))
	}
	out, err := b.Build()
	if err != nil {
		panic(err)
	}
	return out
}

func (w *work) commitOffset(then func()) {
	t, book := w.t, w.t.m.club.book
	w.ask(tries, func() *node { return w.coordinator }, false, func(b *broker, reply func(error)) {
		w.deed.attempt = book.attempt(t.m, w.deed.input, w.deed.upTo)
		w.deed.attempt.generation = w.generation
		book.delivered(w.deed.attempt)
		producer := t.producer
		t.m.s.plants.producer(t.id, &producer)
		req := &group.CommitRequest{Group: t.m.club.name, Generation: w.generation, MemberID: w.memberID, InstanceID: t.m.instance, Producer: &group.Producer{ID: producer.ID, Epoch: producer.Epoch},
			Offsets: []group.Commit{{TopicPartition: w.deed.input, Offset: w.deed.upTo, LeaderEpoch: -1, Metadata: w.deed.attempt.note(), TimeMs: group.NoTime, RetentionMs: group.NoTime}}}
		t.m.s.plants.commit(t.m.club, req)
		a := w.deed.attempt
		b.commitInTransaction(t.id, req, func(err error) {
			if err == nil {
				book.accepted(a)
			}
			reply(err)
		})
	}, then, func(err error, certain bool) {
		if err == nil || passes(err) {
			t.m.coordinator = nil // it may be elsewhere
		}
		w.fail(err, certain)
	})
}

// end sends the decision.
func (w *work) end(commit bool) {
	t, s := w.t, w.t.m.s
	w.ask(tries, w.coordinatorOfTransactions, false, func(b *broker, reply func(error)) {
		w.deed.commitSent = w.deed.commitSent || commit
		req := &txn.EndRequest{ID: t.id, Producer: t.producer, Commit: commit}
		s.plants.producer(t.id, &req.Producer)
		since := s.deeds.givenSoFar(t.id)
		b.coordinators.ofID(t.id, func(core *txn.Core, nowMs int64) {
			core.End(nowMs, req, func(err error) {
				s.deeds.judgeFence(t, since, err, "ends a transaction")
				if err == nil && commit {
					w.deed.committed = true
					t.m.club.book.counts(w.deed.attempt)
				}
				reply(err)
			})
		}, reply)
	}, func() {
		if commit {
			s.Done.CommittedTxns++
			if t.m.known[w.deed.input] && t.m.generation == w.generation {
				t.m.at[w.deed.input] = w.deed.upTo
			}
		} else {
			s.Done.AbortedTxns++
			t.ready = t.ready && !w.closing
		}
		w.over()
	}, func(error, bool) {
		t.ready = false // what became of it, the next incarnation will see
		clear(t.m.known)
		w.over()
	})
}

// fail gives a transaction up: with an abort, or, when it is not certain what was written, with a new epoch, before which
// some abort all the same. What they wrote may then come when nobody waits for it any more.
func (w *work) fail(err error, certain bool) {
	t := w.t
	t.m.s.w.tell("%s gives up transaction %d: %v", t.id, w.deed.number, err)
	clear(t.m.known)
	if fenced(err) || !certain && t.m.s.w.chance(0.5) {
		t.ready = false
		w.over()
		return
	}
	w.closing = !certain
	w.end(false)
}

// deed is what a transaction is to do: of a partition of the input it takes the records from one offset up to another,
// and writes one for each.
type deed struct {
	number     int
	input      group.TopicPartition
	from, upTo int64
	outputs    int
	records    int
	attempt    *attempt
	commitSent bool // nobody may see anything of it before
	committed  bool // a coordinator said so
	seen       int
}

// split is what goes to each partition of the output.
func (d *deed) split(entries []entry) map[int32][]string {
	parts := map[int32][]string{}
	for i, e := range entries {
		p := int32((d.number + i) % d.outputs)
		parts[p] = append(parts[p], fmt.Sprintf("x%d:%d:%d", d.number, d.input.Partition, e.offset))
	}
	return parts
}

// leaderOf is the leader of a partition and its log, nil while nobody leads for certain.
func (s *Sim) leaderOf(tp controller.TopicPartition) (*node, *commitlog.Log) {
	in := s.incarnation(tp)
	a, ok := s.exists(in)
	for _, n := range s.nodes {
		if ok && n.up && !n.broker.failed && n.broker.logs != nil && s.leadsNow(n, in) {
			return n, n.broker.logOf(tp, a.ID)
		}
	}
	return nil, nil
}
