package broker

import (
	"context"
	"errors"
	"sync/atomic"

	"barnabas/zkstate"
)

// features follows the znode of finalised features (KIP-584). A cluster on ZooKeeper finalises none, but clients are told the node's version.
type features struct {
	zk      *zkstate.Client
	version atomic.Int64 // -1: no node
}

func newFeatures(zk *zkstate.Client) *features {
	f := &features{zk: zk}
	f.version.Store(-1)
	return f
}

// follow reads the node now and at each change until ctx ends. A read that fails is made up for by the next session.
func (f *features) follow(ctx context.Context, events <-chan zkstate.Event) {
	follow(ctx, events, zkstate.FeaturePath, f.look)
}

// look leaves a watch by the same call, also when the node is not there yet.
func (f *features) look(ctx context.Context) {
	r, err := f.zk.One(ctx, zkstate.Exists(zkstate.FeaturePath).Watched())
	switch {
	case err == nil:
		f.version.Store(int64(r.Stat.Version))
	case errors.Is(err, zkstate.ErrNoNode):
		f.version.Store(-1)
	}
}
