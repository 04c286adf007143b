package broker

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"barnabas/broker/netserver"
	"barnabas/config"
	"barnabas/zkstate"
)

func (b *Broker) bind() error {
	v := b.live.values()
	entrances := b.security.open()
	limits, err := connectionLimits(b.life, v, entrances)
	if err != nil {
		return err
	}
	b.arrivals.Limit(arrivalLimits(v, entrances))
	cfg := netserver.Config{
		MaxRequestBytes: int32(b.values.Int("socket.request.max.bytes")),
		QueuedMaxBytes:  queuedMaxBytes(b.values),
		Limits:          limits,
		Protected:       []string{b.values.InterBrokerListener(), b.values.ControlListener()},
		Arrivals:        b.arrivals,
		IdleTimeout:     b.values.Millis("connections.max.idle.ms"),
		SendBuffer:      int(b.values.Int("socket.send.buffer.bytes")),
		ReceiveBuffer:   int(b.values.Int("socket.receive.buffer.bytes")),
		Log:             b.log.WithField("part", "network"),
	}
	for _, e := range entrances {
		cfg.Listeners = append(cfg.Listeners, e.Listener)
	}
	if backlog, set := b.values.Lookup("socket.listen.backlog.size"); set {
		cfg.Backlog, _ = strconv.Atoi(backlog) // Kafka's default of 50 would shrink the system's queue
	}
	b.server, err = netserver.Listen(cfg)
	return err
}

// queuedMaxBytes bounds the requests held at once. Kafka's default is no bound; ours is one that a small machine survives and a loaded one does not feel.
func queuedMaxBytes(v *config.Values) int64 {
	const sane = 256 << 20
	if n := v.Int("queued.max.request.bytes"); n > 0 {
		return n
	}
	return max(sane, 2*v.Int("socket.request.max.bytes"))
}

// endpoints are the addresses to publish: an empty host becomes this machine's name, port 0 the one that was bound. What is not bound is not published.
func (b *Broker) endpoints() ([]zkstate.Endpoint, error) {
	v := b.live.values()
	advertised, err := v.AdvertisedListeners()
	if err != nil {
		return nil, err
	}
	_, own := v.Lookup("advertised.listeners")
	_, listed := v.Lookup("listeners")
	var out []zkstate.Endpoint
	for _, l := range advertised {
		e, at := b.security.entrance(l.Name), b.server.Addr(l.Name)
		if e == nil || at == nil {
			continue
		}
		if listed && !own {
			l.Host, l.Port = e.Host, e.Port // a listener stays where it is until the next start
		}
		if l.Host == "" {
			if l.Host, err = os.Hostname(); err != nil {
				return nil, fmt.Errorf("this machine's name, needed for advertised.listeners: %w", err)
			}
		}
		if l.Port == 0 {
			if tcp, ok := at.(*net.TCPAddr); ok {
				l.Port = tcp.Port
			}
		}
		out = append(out, zkstate.Endpoint{Listener: l.Name, Protocol: l.Protocol, Host: l.Host, Port: int32(l.Port)})
	}
	return out, nil
}

// changeListeners opens the listeners that are new in v, and closes those that are gone (KIP-226). One that cannot be opened is not published; a later change tries it again.
func (b *Broker) changeListeners(v *config.Values) {
	wanted, err := v.Listeners()
	if err != nil {
		b.log.WithError(err).Error("listeners cannot be changed; those before stay open")
		return
	}
	for _, e := range b.security.open() {
		if !e.among(wanted) {
			b.server.Shut(e.Name)
			b.security.remove(e)
			e.close()
			b.log.Infof("listener %s is closed", e.Name)
		}
	}
	for _, l := range wanted {
		if b.security.entrance(l.Name) != nil {
			continue
		}
		if err := b.openListener(v, l); err != nil {
			b.log.WithError(err).Errorf("%s cannot be opened", l.URI())
			continue
		}
		b.log.Infof("%s is open", l.URI())
	}
}

func (b *Broker) openListener(v *config.Values, l config.Listener) error {
	e, err := b.security.newEntrance(b.life, v, l)
	if err != nil {
		return err
	}
	b.security.add(e) // before the first client comes by it
	if b.security.usesCredentials() {
		err = b.readCredentials(b.life)
	}
	if err == nil {
		err = b.server.Open(e.Listener)
	}
	if err != nil {
		b.security.remove(e)
		return err
	}
	b.keep(e)
	return nil
}

// keep starts what keeps a listener's mechanisms fresh, until it is closed or the broker stops.
func (b *Broker) keep(e *entrance) {
	var life context.Context
	life, e.close = context.WithCancel(b.life)
	for _, keep := range e.keepers {
		b.following.Go(func() { keep(life) })
	}
}

// checkListeners refuses dynamic settings by which a listener would be somewhere else, or something else, than it is: other addresses would be published, or nothing would be heard,
// until the next start. What the file says is the way back, and counts from then on. A new listener must be one that can be served.
func (b *Broker) checkListeners(then *config.Values) error {
	wanted, err := then.Listeners()
	if err != nil {
		return err
	}
	file, err := b.values.Listeners()
	back := err == nil && slices.Equal(wanted, file)
	for _, l := range wanted {
		e := b.security.entrance(l.Name)
		if e == nil {
			if _, err := b.security.newEntrance(b.life, then, l); err != nil {
				return refused("%w", err)
			}
			continue
		}
		if l.Protocol != e.Protocol {
			return refused("Security protocol cannot be updated for existing listener %s", l.Name)
		}
		if !back && (l.Host != e.Host || l.Port != e.Port) {
			return refused("listener %s stays where it is until the broker starts anew: add one of another name, or change its file", l.Name)
		}
	}
	return nil
}

func refused(format string, args ...any) error {
	return fmt.Errorf("org.apache.kafka.common.config.ConfigException: "+format, args...)
}

// AdvertisedBetweenBrokers is where other brokers reach this one, as host:port.
func (b *Broker) AdvertisedBetweenBrokers() (string, error) {
	endpoints, err := b.endpoints()
	if err != nil {
		return "", err
	}
	name := b.values.InterBrokerListener()
	for _, e := range endpoints {
		if e.Listener == name {
			return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))), nil
		}
	}
	return "", fmt.Errorf("the listener between brokers, %s, is not advertised", name)
}

// Addr is the address that a listener is bound to.
func (b *Broker) Addr(listener string) net.Addr { return b.server.Addr(listener) }
