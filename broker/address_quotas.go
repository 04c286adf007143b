package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"sync"

	"github.com/sirupsen/logrus"

	"barnabas/broker/quota"
	"barnabas/zkstate"
)

// addressQuotas brings the limits of addresses on new connections (connection_creation_rate, KIP-612) from ZooKeeper to those who hold addresses to them.
type addressQuotas struct {
	zk   *zkstate.Client
	log  *logrus.Entry
	held *quota.Arrivals

	mu struct {
		sync.Mutex
		any *float64
		own map[string]addressQuota // by the node's name
	}
}

type addressQuota struct {
	from  netip.Addr
	limit float64
}

func newAddressQuotas(zk *zkstate.Client, held *quota.Arrivals, log *logrus.Entry) *addressQuotas {
	q := &addressQuotas{zk: zk, log: log, held: held}
	q.mu.own = map[string]addressQuota{}
	return q
}

// load reads the limits of all.
func (q *addressQuotas) load(ctx context.Context) error {
	listed, err := q.zk.One(ctx, zkstate.Children(zkstate.EntityTypePath(zkstate.IPEntity)))
	if err != nil && !errors.Is(err, zkstate.ErrNoNode) { // a cluster of before 2.7 has no such folder
		return err
	}
	reads := make([]zkstate.Op, len(listed.Children))
	for i, name := range listed.Children {
		reads[i] = zkstate.Get(zkstate.EntityPath(zkstate.IPEntity, name))
	}
	results, err := q.zk.Do(ctx, reads)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.any, q.mu.own = nil, map[string]addressQuota{}
	for i, r := range results {
		if r.Err != nil {
			continue // removed since it was listed
		}
		c, err := zkstate.DecodeEntityConfig(r.Data)
		if err == nil {
			err = q.putLocked(ctx, listed.Children[i], c)
		}
		if err != nil {
			q.log.WithError(err).Warnf("the quota of ip %s cannot be read and does not hold", listed.Children[i])
		}
	}
	q.enforceLocked()
	return nil
}

// changed takes what was read of one address.
func (q *addressQuotas) changed(ctx context.Context, name string, c zkstate.EntityConfig) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.putLocked(ctx, name, c); err != nil {
		q.log.WithError(err).Warnf("the quota of ip %s cannot be read; that of before holds", name)
		return
	}
	q.enforceLocked()
	q.log.Infof("ip %s now has the quotas %v", name, c)
}

func (q *addressQuotas) putLocked(ctx context.Context, name string, c zkstate.EntityConfig) error {
	text, set := c["connection_creation_rate"]
	limit := math.Inf(1)
	if set {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("connection_creation_rate=%s is no number of connections", text)
		}
		if n < math.MaxInt32 { // which Kafka writes for no limit
			limit = float64(n)
		}
	}
	switch {
	case name == zkstate.DefaultEntity && set:
		q.mu.any = &limit
	case name == zkstate.DefaultEntity:
		q.mu.any = nil
	case set:
		from, err := addressOf(ctx, name)
		if err != nil {
			return err
		}
		q.mu.own[name] = addressQuota{from, limit}
	default:
		delete(q.mu.own, name)
	}
	return nil
}

// enforceLocked puts in force what is known. Limits are few: all are made anew.
func (q *addressQuotas) enforceLocked() {
	limits := quota.AddressLimits{Any: q.mu.any, Own: map[netip.Addr]float64{}}
	for _, own := range q.mu.own {
		limits.Own[own.from] = own.limit
	}
	q.held.LimitAddresses(limits)
}
