package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/broker/netserver"
	"barnabas/broker/quota"
	"barnabas/config"
	"barnabas/zkstate"
)

// lookupTimeout bounds how long the name of a host is looked for that a limit is for.
const lookupTimeout = 5 * time.Second

// addressOf is the address that a limit is for: Kafka takes names of hosts too, and the first address that Java finds.
func addressOf(ctx context.Context, host string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil || len(found) == 0 {
		found, err = net.DefaultResolver.LookupNetIP(ctx, "ip6", host)
	}
	if err == nil && len(found) == 0 {
		err = errors.New("it has no address")
	}
	if err != nil {
		return netip.Addr{}, fmt.Errorf("the host %q that a limit of connections is for: %w", host, err)
	}
	return found[0].Unmap(), nil
}

// connectionLimits are how many connections v allows. What it allows on all listeners is the limit of each of them, too, that has none of its own.
func connectionLimits(ctx context.Context, v *config.Values, listeners []netserver.Listener) (netserver.Limits, error) {
	limits := netserver.Limits{
		Connections: int(v.Int("max.connections")),
		OnListener:  map[string]int{},
		PerIP:       int(v.Int("max.connections.per.ip")),
		FromIP:      map[netip.Addr]int{},
	}
	for _, l := range listeners {
		limits.OnListener[l.Name] = int(number(v.ForListener(l.Name, "max.connections")))
	}
	overrides, err := v.MaxConnectionsOf()
	if err != nil {
		return limits, err
	}
	for host, most := range overrides {
		from, err := addressOf(ctx, host)
		if err != nil {
			return limits, err
		}
		limits.FromIP[from] = most
	}
	return limits, nil
}

// arrivalLimits are how many connections v allows per second.
func arrivalLimits(v *config.Values, listeners []netserver.Listener) quota.ArrivalLimits {
	const name = "max.connection.creation.rate"
	limits := quota.ArrivalLimits{Broker: float64(v.Int(name)), Listeners: map[string]float64{}}
	for _, l := range listeners {
		limits.Listeners[l.Name] = float64(number(v.ForListener(l.Name, name)))
	}
	return limits
}

// number reads a value that the table has checked.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// limitConnections puts in force what v says of connections.
func (b *Broker) limitConnections(v *config.Values) {
	b.arrivals.Limit(arrivalLimits(v, b.security.listeners))
	limits, err := connectionLimits(b.life, v, b.security.listeners)
	if err != nil {
		b.log.WithError(err).Error("limits of connections cannot be changed; those before hold")
		return
	}
	b.server.Limit(limits)
}

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
