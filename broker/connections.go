package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"barnabas/broker/netserver"
	"barnabas/broker/quota"
	"barnabas/config"
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
func connectionLimits(ctx context.Context, v *config.Values, listeners []*entrance) (netserver.Limits, error) {
	limits := netserver.Limits{
		Connections: int(v.Int("max.connections")),
		OnListener:  map[string]int{},
		PerIP:       int(v.Int("max.connections.per.ip")),
		FromIP:      map[netip.Addr]int{},
	}
	for _, l := range listeners {
		limits.OnListener[l.Name] = int(v.IntForListener(l.Name, "max.connections"))
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
func arrivalLimits(v *config.Values, listeners []*entrance) quota.ArrivalLimits {
	const name = "max.connection.creation.rate"
	limits := quota.ArrivalLimits{Broker: float64(v.Int(name)), Listeners: map[string]float64{}}
	for _, l := range listeners {
		limits.Listeners[l.Name] = float64(v.IntForListener(l.Name, name))
	}
	return limits
}

// limitConnections puts in force what v says of connections.
func (b *Broker) limitConnections(v *config.Values) {
	b.arrivals.Limit(arrivalLimits(v, b.security.open()))
	limits, err := connectionLimits(b.life, v, b.security.open())
	if err != nil {
		b.log.WithError(err).Error("limits of connections cannot be changed; those before hold")
		return
	}
	b.server.Limit(limits)
}
