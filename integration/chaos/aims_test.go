package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/integration/wiretap"
)

// aim is a step of a client's conversation with its coordinator, at which the coordinator comes to harm.
type aim struct {
	name     string
	fits     func(x *wiretap.Exchange, answered bool) bool
	wait     time.Duration                                 // the harm comes so much later, or sooner
	provoke  func(s *coordination, t testing.TB, pick int) // makes the step happen; nil: it happens all the time
	severed  int                                           // how many of the other brokers get no markers from this one while the transaction is ended
	needsCut bool
}

// received is the moment at which a request has just left; what the broker does with it and the harm are at the same time.
func received(key kmsg.Key) func(*wiretap.Exchange, bool) bool {
	return func(x *wiretap.Exchange, answered bool) bool { return !answered && x.Request.Key() == key.Int16() }
}

// answeredWell is the moment at which a good answer is there and the client has not seen it.
func answeredWell(key kmsg.Key) func(*wiretap.Exchange, bool) bool {
	return func(x *wiretap.Exchange, answered bool) bool {
		return answered && x.Request.Key() == key.Int16() && well(x.Response)
	}
}

func well(resp kmsg.Response) bool {
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		return r.ErrorCode == 0
	case *kmsg.SyncGroupResponse:
		return r.ErrorCode == 0
	case *kmsg.OffsetCommitResponse:
		return len(r.Topics) > 0 && r.Topics[0].Partitions[0].ErrorCode == 0
	case *kmsg.InitProducerIDResponse:
		return r.ErrorCode == 0
	case *kmsg.AddPartitionsToTxnResponse:
		return len(r.Topics) > 0 && r.Topics[0].Partitions[0].ErrorCode == 0 || len(r.Transactions) > 0
	case *kmsg.AddOffsetsToTxnResponse:
		return r.ErrorCode == 0
	case *kmsg.TxnOffsetCommitResponse:
		return len(r.Topics) > 0 && r.Topics[0].Partitions[0].ErrorCode == 0
	case *kmsg.EndTxnResponse:
		return r.ErrorCode == 0
	}
	return false
}

// aims are all the steps of a group and of a transaction.
var aims = []aim{
	{name: "JoinGroup received", fits: received(kmsg.JoinGroup), wait: 3 * time.Millisecond, provoke: (*coordination).rebalance},
	{name: "joined, not synced", fits: answeredWell(kmsg.JoinGroup), provoke: (*coordination).rebalance},
	{name: "SyncGroup received", fits: received(kmsg.SyncGroup), wait: 3 * time.Millisecond, provoke: (*coordination).rebalance},
	{name: "synced", fits: answeredWell(kmsg.SyncGroup), wait: 5 * time.Millisecond, provoke: (*coordination).rebalance},
	{name: "OffsetCommit received", fits: received(kmsg.OffsetCommit), wait: 3 * time.Millisecond},
	{name: "OffsetCommit answered", fits: answeredWell(kmsg.OffsetCommit)},
	{name: "InitProducerID received", fits: received(kmsg.InitProducerID), wait: 3 * time.Millisecond, provoke: (*coordination).abandon},
	{name: "InitProducerID answered", fits: answeredWell(kmsg.InitProducerID), provoke: (*coordination).abandon},
	{name: "AddPartitionsToTxn received", fits: received(kmsg.AddPartitionsToTxn), wait: 3 * time.Millisecond},
	{name: "AddPartitionsToTxn answered", fits: answeredWell(kmsg.AddPartitionsToTxn)},
	{name: "AddOffsetsToTxn received", fits: received(kmsg.AddOffsetsToTxn), wait: 3 * time.Millisecond},
	{name: "TxnOffsetCommit received", fits: received(kmsg.TxnOffsetCommit), wait: 3 * time.Millisecond},
	{name: "TxnOffsetCommit answered", fits: answeredWell(kmsg.TxnOffsetCommit)},
	{name: "EndTxn received", fits: received(kmsg.EndTxn), wait: 5 * time.Millisecond},
	{name: "EndTxn answered, markers underway", fits: answeredWell(kmsg.EndTxn), wait: 2 * time.Millisecond},
	{name: "EndTxn answered, CompleteCommit underway", fits: answeredWell(kmsg.EndTxn), wait: 20 * time.Millisecond},
	{name: "decided, no markers to others", severed: 2, needsCut: true},
	{name: "decided, some markers sent", severed: 1, needsCut: true},
}

// rebalance makes one of the groups rebalance.
func (s *coordination) rebalance(t testing.TB, pick int) {
	c := s.consumers[pick%len(s.consumers)]
	c.replace(t, s.world, s.listener, pick/len(s.consumers)%c.members)
}

// abandon makes a copier leave its session behind; another begins with the same transactional id.
func (s *coordination) abandon(t testing.TB, _ int) {
	select {
	case s.copiers.abandon <- struct{}{}:
	case <-time.After(aimTimeout):
		t.Log("no copier is in a transaction")
	}
}

// harms are what a coordinator comes to, the first most often.
func (s *coordination) harms(b *cluster.Broker) []func(*cluster.Broker, string) fault {
	everybody := func(*cluster.Broker, string) fault { return s.killAll() }
	list := []func(*cluster.Broker, string) fault{s.kill, s.kill, s.kill, s.kill, s.freeze, s.shutDown, everybody}
	if s.firewall != nil {
		list = append(list, s.cutOff, s.cutFromZooKeeper)
	}
	switch {
	case b == s.small:
		list = append(list, func(*cluster.Broker, string) fault { return s.fillDisk() })
	case canTrace():
		list = append(list, s.failWrites)
	}
	return list
}

// shutDown ends a broker as an operator does, its partitions handed over.
func (w *world) shutDown(b *cluster.Broker, name string) fault {
	return fault{"controlled shutdown", name,
		func(t testing.TB) { require.NoError(t, syscall.Kill(b.PID(), syscall.SIGTERM)) },
		func(t testing.TB) {
			b.ExitCode(t, soon)
			b.Start(t)
		}}
}

// sever keeps a broker from sending markers to others, while they go on fetching from it: what it writes is committed.
func (f *firewall) sever(t testing.TB, uid int, others []string) {
	t.Helper()
	f.drop(t, fmt.Sprintf("out meta skuid %d tcp dport %s", uid, ports(t, others...)))
}

// hit lets the coordinator of a step come to harm, and returns the fault that is to be healed. false: the step did not come in time.
func (s *coordination) hit(t testing.TB, a aim) (fault, bool) {
	if a.severed > 0 {
		return s.hitDecided(t, a)
	}
	shot := s.listener.gun.aim(a.fits)
	defer close(shot.free)
	if a.provoke != nil {
		pick := s.rng.IntN(1 << 20)
		s.provoking.Go(func() { a.provoke(s, t, pick) }) // what it starts may be who is waited for
	}
	var addr string
	select {
	case addr = <-shot.hit:
	case <-time.After(aimTimeout):
		s.listener.gun.lower()
		return fault{}, false
	}
	b := s.at(addr)
	if b == nil {
		return fault{}, false // a seed that the client has not learned the name of yet
	}
	harms := s.harms(b)
	f := harms[s.rng.IntN(len(harms))](b, "broker "+fmt.Sprint(b.ID))
	if a.wait > 0 {
		s.pause(0, a.wait)
	}
	f.inject(t)
	return f, true
}

func (s *coordination) at(addr string) *cluster.Broker {
	for _, b := range s.Brokers {
		if slices.Contains(s.addrs(b), addr) {
			return b
		}
	}
	return nil
}

// hitDecided kills a coordinator when the decision of a transaction is in its log, and some leaders, or none but itself, have their markers. Any of its transactions will do: one that is
// decided and is not looked at would wait for its markers as long as the others are looked at, and they for its offsets.
func (s *coordination) hitDecided(t testing.TB, a aim) (fault, bool) {
	var ids []string
	for number := range uint32(copierCount) {
		ids = append(ids, s.copiers.id(1+number))
	}
	id := ids[s.rng.IntN(len(ids))]
	ctx, cancel := context.WithTimeout(context.Background(), aimTimeout)
	defer cancel()
	found := s.admin.FindTxnCoordinators(ctx, id)
	if found[id].Err != nil {
		return fault{}, false
	}
	b := s.Brokers[found[id].NodeID-1]
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr))
	require.NoError(t, err)
	defer client.Close()
	var others []string
	for left, o := a.severed, s.other(b); left > 0; left, o = left-1, s.other(o) {
		others = append(others, s.addrs(o)...)
	}
	s.firewall.sever(t, s.user(b), others)
	defer s.firewall.open(t)
	for ctx.Err() == nil {
		decided, moved := anyDecided(ctx, client, ids)
		if decided {
			f := s.kill(b, "broker "+fmt.Sprint(b.ID))
			f.inject(t)
			return f, true
		}
		if moved {
			break
		}
		time.Sleep(time.Millisecond) // the pace of looking
	}
	return fault{}, false
}

// anyDecided asks the broker that is the client's seed whether it has decided the end of one of the transactions and still sends markers; moved if it is the coordinator of none.
func anyDecided(ctx context.Context, client *kgo.Client, ids []string) (decided, moved bool) {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = ids
	resp, err := client.SeedBrokers()[0].Request(ctx, req)
	if err != nil {
		return false, false
	}
	moved = true
	for _, s := range resp.(*kmsg.DescribeTransactionsResponse).TransactionStates {
		decided = decided || strings.HasPrefix(s.State, "Prepare")
		moved = moved && s.ErrorCode == kerr.NotCoordinator.Code
	}
	return decided, moved
}

// watchProgress samples how far read_committed consumers can read, until stop.
func (s *coordination) watchProgress(ctx context.Context, topics ...string) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		stable, err := s.admin.ListCommittedOffsets(limited, topics...)
		ends, endErr := s.admin.ListEndOffsets(limited, topics...)
		cancel()
		if err == nil && endErr == nil {
			s.sampled(stable, ends)
		}
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func (s *coordination) sampled(stable, ends kadm.ListedOffsets) {
	at := s.listener.tap.Now()
	stable.Each(func(o kadm.ListedOffset) {
		if end, found := ends.Lookup(o.Topic, o.Partition); found && o.Err == nil && end.Err == nil {
			s.progress = append(s.progress, progressOf(o, end, at))
		}
	})
}
