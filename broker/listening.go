package broker

import (
	"errors"
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
	limits, err := connectionLimits(b.life, v, b.security.listeners)
	if err != nil {
		return err
	}
	b.arrivals.Limit(arrivalLimits(v, b.security.listeners))
	cfg := netserver.Config{
		Listeners:       b.security.listeners,
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

// endpoints are the addresses to publish: an empty host becomes this machine's name, port 0 the one that was bound. What is not bound is not published: listeners are opened at start
// only, and a dynamic setting may have changed since.
func (b *Broker) endpoints() ([]zkstate.Endpoint, error) {
	v := b.live.values()
	if _, set := v.Lookup("advertised.listeners"); !set {
		v = b.security.values // what was bound is what is published
	}
	advertised, err := v.AdvertisedListeners()
	if err != nil {
		return nil, err
	}
	var out []zkstate.Endpoint
	for _, l := range advertised {
		if b.server.Addr(l.Name) == nil {
			continue
		}
		if l.Host == "" {
			if l.Host, err = os.Hostname(); err != nil {
				return nil, fmt.Errorf("this machine's name, needed for advertised.listeners: %w", err)
			}
		}
		if l.Port == 0 {
			if addr, ok := b.server.Addr(l.Name).(*net.TCPAddr); ok {
				l.Port = addr.Port
			}
		}
		out = append(out, zkstate.Endpoint{Listener: l.Name, Protocol: l.Protocol, Host: l.Host, Port: int32(l.Port)})
	}
	return out, nil
}

// checkListeners refuses dynamic settings that would change what is bound: other addresses would be published, or nothing would be heard, until the next start. What the file says is
// the way back, and counts from then on.
func checkListeners(bound, file, then *config.Values) error {
	const refused = "org.apache.kafka.common.config.ConfigException: "
	now, err := bound.Listeners()
	if err != nil {
		return err
	}
	wanted, err := then.Listeners()
	if err != nil {
		return err
	}
	for _, l := range wanted {
		if i := slices.IndexFunc(now, func(o config.Listener) bool { return o.Name == l.Name }); i >= 0 && now[i].Protocol != l.Protocol {
			return fmt.Errorf(refused+"Security protocol cannot be updated for existing listener %s", l.Name)
		}
	}
	if back, err := file.Listeners(); slices.Equal(wanted, now) || err == nil && slices.Equal(wanted, back) {
		return nil
	}
	return errors.New(refused + "listeners are opened when the broker starts: change them in its file, and start it anew")
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
