package group

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/coordinator"
	"barnabas/broker/record"
)

// desk is a core with a clock and a log that the test holds in its hand.
type desk struct {
	t     testing.TB
	core  *Core
	nowMs int64
	log   []record.Batch        // what is appended
	held  []*coordinator.Append // appends that are not acknowledged, if hold is set
	hold  bool
	fail  error // of the appends to come
	next  int64
	ids   int
}

const startMs = 1_700_000_000_000

func deskConfig() CoreConfig {
	return CoreConfig{InitialRebalanceDelayMs: 3000, MaxSize: 100, OffsetMetadataMaxBytes: 4096, OffsetsRetentionMs: 60_000, Format: FormatSince23}
}

func newDesk(t testing.TB, cfg CoreConfig) *desk {
	d := &desk{t: t, nowMs: startMs}
	cfg.NewID = func() string { d.ids++; return fmt.Sprint(d.ids) }
	d.core = NewCore(cfg)
	return d
}

// work does what the core wants done.
func (d *desk) work() {
	for {
		out := d.core.Take()
		for _, a := range out.Appends {
			if d.hold || len(d.held) > 0 { // the log keeps the order
				d.held = append(d.held, a)
			} else {
				d.acknowledge(a, d.fail)
			}
		}
		for _, answer := range out.Answers {
			answer()
		}
		if len(out.Appends)+len(out.Answers) == 0 {
			return
		}
	}
}

// acknowledge writes what was to be appended, or fails it.
func (d *desk) acknowledge(a *coordinator.Append, err error) {
	if err != nil {
		a.Ended(d.nowMs, 0, err)
		return
	}
	o := record.BuilderOptions{BaseOffset: d.next}
	if a.Producer != nil {
		o.Producer = &record.Producer{ID: a.Producer.ID, Epoch: a.Producer.Epoch, Transactional: true}
	}
	b := record.NewBuilder(o)
	for _, r := range a.Records {
		b.Append(d.nowMs, r.Key, r.Value)
	}
	batch, err := b.Build()
	require.NoError(d.t, err)
	d.log = append(d.log, batch)
	first := d.next
	d.next += int64(len(a.Records))
	a.Ended(d.nowMs, first, nil)
}

// marker ends a transaction in the log.
func (d *desk) marker(producer int64, commit bool) {
	kind := record.Abort
	if commit {
		kind = record.Commit
	}
	b := record.NewBuilder(record.BuilderOptions{BaseOffset: d.next, Control: true, Producer: &record.Producer{ID: producer, BaseSequence: record.NoSequence, Transactional: true}})
	b.Append(d.nowMs, []byte{0, 0, 0, byte(kind)}, []byte{0, 0, 0, 0, 0, 0})
	batch, err := b.Build()
	require.NoError(d.t, err)
	d.log = append(d.log, batch)
	d.next++
}

// release acknowledges what was held back, in order.
func (d *desk) release(err error) {
	held := d.held
	d.held = nil
	for _, a := range held {
		d.acknowledge(a, err)
	}
	d.work()
}

// pass lets time pass.
func (d *desk) pass(ms int64) {
	end := d.nowMs + ms
	for {
		at, any := d.core.Next()
		if !any || at > end {
			break
		}
		d.nowMs = max(d.nowMs, at)
		d.core.Tick(d.nowMs)
		d.work()
	}
	d.nowMs = end
}

// restart makes another core from the log.
func (d *desk) restart() {
	l := NewLoader(record.Limits{})
	for _, b := range d.log {
		e := record.Entry(slices.Clone(b))
		l.Add(e)
		clear(e) // it is valid during the call alone
	}
	require.NoError(d.t, l.First)
	cfg := d.core.cfg
	d.core = NewCore(cfg)
	d.core.Loaded(d.nowMs, l)
	d.work()
}

// later is an answer that may not be there yet.
type later[T any] struct{ value *T }

func (l *later[T]) take(v T) {
	if l.value != nil {
		panic("answered twice")
	}
	l.value = &v
}

func says(topics ...string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = topics
	return m.AppendTo(nil)
}

func joinRequest(group, member string, topics ...string) *JoinRequest {
	return &JoinRequest{
		Group: group, MemberID: member, ClientID: "c", ClientHost: "/h", RebalanceTimeoutMs: 60_000, SessionTimeoutMs: 10_000,
		ProtocolType: "consumer", Protocols: []Protocol{{Name: "range", Metadata: says(topics...)}},
	}
}

func (d *desk) join(req *JoinRequest) *later[JoinResult] {
	var l later[JoinResult]
	d.core.Join(d.nowMs, req, l.take)
	d.work()
	return &l
}

func (d *desk) sync(group string, generation int32, member string, assignments ...Assignment) *later[SyncResult] {
	var l later[SyncResult]
	d.core.Sync(d.nowMs, &SyncRequest{Group: group, Generation: generation, MemberID: member, Assignments: assignments}, l.take)
	d.work()
	return &l
}

func (d *desk) heartbeat(group string, generation int32, member string) error {
	var l later[error]
	d.core.Heartbeat(d.nowMs, &HeartbeatRequest{Group: group, Generation: generation, MemberID: member}, l.take)
	d.work()
	return *l.value
}

func (d *desk) leave(group, member string) error {
	var l later[LeaveResult]
	d.core.Leave(d.nowMs, &LeaveRequest{Group: group, Members: []LeavingMember{{MemberID: member}}}, l.take)
	d.work()
	return l.value.Members[0]
}

func (d *desk) commit(req *CommitRequest) *later[CommitResult] {
	var l later[CommitResult]
	d.core.Commit(d.nowMs, req, l.take)
	d.work()
	return &l
}

func commitOne(group string, generation int32, member, topic string, offset int64) *CommitRequest {
	return &CommitRequest{Group: group, Generation: generation, MemberID: member, Offsets: []Commit{{
		TopicPartition: TopicPartition{topic, 0}, Offset: offset, LeaderEpoch: 2, Metadata: "m", TimeMs: NoTime, RetentionMs: NoTime,
	}}}
}

func (d *desk) fetch(group, topic string, stable bool) FetchedOffset {
	var l later[FetchOffsetsResult]
	d.core.FetchOffsets(&FetchOffsetsRequest{Group: group, Partitions: []TopicPartition{{topic, 0}}, RequireStable: stable}, l.take)
	d.work()
	return l.value.Offsets[0]
}

// stable makes a stable group of one member that subscribes to topics.
func (d *desk) stable(group string, topics ...string) (member string, generation int32) {
	j := d.join(joinRequest(group, "", topics...))
	d.pass(3000)
	require.NotNil(d.t, j.value)
	require.NoError(d.t, j.value.Err)
	s := d.sync(group, j.value.Generation, j.value.MemberID, Assignment{j.value.MemberID, []byte("all")})
	require.NotNil(d.t, s.value)
	require.NoError(d.t, s.value.Err)
	return j.value.MemberID, j.value.Generation
}
