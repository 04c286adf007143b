package broker

import (
	"context"
	"strconv"
	"sync/atomic"

	"barnabas/zkstate"
)

// registrations follows the brokers' nodes and knows each one's broker epoch, the czxid (KIP-380). A follower that restarted is told by it from the one before
// (KIP-903): below inter.broker.protocol.version 3.5 its fetches do not say which of them sends them, and nothing that the controller sends does either.
type registrations struct {
	zk      *zkstate.Client
	changed func() // called after each look
	epochs  atomic.Pointer[map[int32]int64]
}

func newRegistrations(zk *zkstate.Client) *registrations {
	r := &registrations{zk: zk}
	r.epochs.Store(&map[int32]int64{})
	return r
}

// EpochOf is the epoch of a broker's registration, -1 when it is not known.
func (r *registrations) EpochOf(id int32) int64 {
	if epoch, known := (*r.epochs.Load())[id]; known {
		return epoch
	}
	return noBrokerEpoch
}

// follow looks now and at each change until ctx ends.
func (r *registrations) follow(ctx context.Context, events <-chan zkstate.Event) {
	follow(ctx, events, zkstate.BrokerIDsPath, r.look)
}

// look reads all registrations and leaves a watch for the next change. A broker that registers anew is a change of the list, twice: its node goes and another
// one comes. When a read fails, nothing is known until the next session: an epoch of the past would keep a follower out of the ISR for good.
func (r *registrations) look(ctx context.Context) {
	epochs := r.read(ctx)
	if ctx.Err() != nil {
		return
	}
	r.epochs.Store(&epochs)
	r.changed()
}

func (r *registrations) read(ctx context.Context) map[int32]int64 {
	list, err := r.zk.One(ctx, zkstate.Children(zkstate.BrokerIDsPath).Watched())
	if err != nil {
		return nil
	}
	var ids []int32
	var reads []zkstate.Op
	for _, name := range list.Children {
		if id, err := strconv.ParseInt(name, 10, 32); err == nil {
			ids, reads = append(ids, int32(id)), append(reads, zkstate.Exists(zkstate.BrokerIDPath(int32(id))))
		}
	}
	results, err := r.zk.Do(ctx, reads)
	if err != nil {
		return nil
	}
	epochs := make(map[int32]int64, len(ids))
	for i, result := range results {
		if result.Err == nil {
			epochs[ids[i]] = result.Stat.Czxid
		}
	}
	return epochs
}
