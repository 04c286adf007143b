package controlplane

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// passage stands before a listener and notes what comes by it.
type passage struct {
	addr, target string
	socket       net.Listener
	running      sync.WaitGroup

	mu    sync.Mutex
	keys  map[kmsg.Key]bool
	ended bool
	ends  []net.Conn
}

func newPassage(t *testing.T) *passage {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &passage{addr: socket.Addr().String(), target: net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t))), socket: socket, keys: map[kmsg.Key]bool{}}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *passage) accept() {
	for {
		from, err := p.socket.Accept()
		if err != nil {
			return
		}
		to, err := net.DialTimeout("tcp", p.target, 10*time.Second)
		if err != nil { // the broker is down, which whoever comes is told by this
			_ = from.Close()
			continue
		}
		if !p.hold(from, to) {
			return
		}
		p.running.Go(func() {
			defer func() { _, _ = from.Close(), to.Close() }()
			p.forward(to, from)
		})
		p.running.Go(func() {
			defer func() { _, _ = from.Close(), to.Close() }()
			_, _ = io.Copy(from, to)
		})
	}
}

// hold remembers both ends for the close.
func (p *passage) hold(ends ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = append(p.ends, ends...)
	if p.ended {
		for _, e := range ends {
			_ = e.Close()
		}
	}
	return !p.ended
}

// forward passes requests on, frame by frame.
func (p *passage) forward(to io.Writer, from io.Reader) {
	for {
		head := make([]byte, 6)
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		p.mu.Lock()
		p.keys[kmsg.Key(binary.BigEndian.Uint16(head[4:]))] = true
		p.mu.Unlock()
		if _, err := to.Write(head); err != nil {
			return
		}
		if _, err := io.CopyN(to, from, int64(binary.BigEndian.Uint32(head))-2); err != nil {
			return
		}
	}
}

// seen tells which kinds of requests have come.
func (p *passage) seen(keys ...kmsg.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !slices.ContainsFunc(keys, func(k kmsg.Key) bool { return !p.keys[k] })
}

func (p *passage) waitFor(t *testing.T, what string, keys ...kmsg.Key) {
	t.Helper()
	require.Eventually(t, func() bool { return p.seen(keys...) }, patience, 20*time.Millisecond, what)
}

func (p *passage) close() {
	_ = p.socket.Close()
	p.mu.Lock()
	p.ended = true
	for _, e := range p.ends {
		_ = e.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// A broker of each kind, with a listener for the control plane: whoever is controller, its orders go by that, and so do changes of an ISR; what
// followers fetch goes by the listener between brokers.
func TestTheControlPlaneHasAListenerOfItsOwn(t *testing.T) {
	lane.KafkaJars(t, "3.9.1")
	var control, between []*passage
	c := cluster.Prepare(t, zktest.Embedded(t).Addr(), 2, map[string]string{
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT,CONTROL:PLAINTEXT", "inter.broker.listener.name": "BROKERS", "control.plane.listener.name": "CONTROL",
		"inter.broker.protocol.version": "3.9", "replica.lag.time.max.ms": "3000", "controlled.shutdown.retry.backoff.ms": "500", "file.delete.delay.ms": "500",
	}, func(int) map[string]string {
		b, p := newPassage(t), newPassage(t)
		between, control = append(between, b), append(control, p)
		return map[string]string{
			"listeners":            "PLAINTEXT://${addr},BROKERS://" + b.target + ",CONTROL://" + p.target,
			"advertised.listeners": "PLAINTEXT://${addr},BROKERS://" + b.addr + ",CONTROL://" + p.addr,
		}
	})
	c.Brokers[0].Become(cluster.Kafka("3.9.1"))
	for _, b := range c.Brokers { // the first is controller
		b.Start(t)
		b.WaitReady(t)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(100*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(lane.Patience(t), 2, 2, nil, "t")
	require.NoError(t, err)
	c.WaitWhole(t, "t", 2, 2)
	control[1].waitFor(t, "Kafka's orders", kmsg.LeaderAndISR, kmsg.UpdateMetadata)

	c.Brokers[0].Stop(t)
	c.Brokers[0].Start(t)
	c.Brokers[0].WaitReady(t)
	c.WaitWhole(t, "t", 2, 2)
	control[0].waitFor(t, "Barnabas's orders", kmsg.LeaderAndISR, kmsg.UpdateMetadata)
	control[1].waitFor(t, "the leader tells the controller who is back in the ISR", kmsg.AlterPartition)
	_, err = admin.DeleteTopic(lane.Patience(t), "t")
	require.NoError(t, err)
	control[0].waitFor(t, "Barnabas's order to delete", kmsg.StopReplica)

	for _, p := range between {
		p.waitFor(t, "what followers fetch", kmsg.Fetch)
		for _, k := range []kmsg.Key{kmsg.LeaderAndISR, kmsg.UpdateMetadata, kmsg.StopReplica, kmsg.AlterPartition} {
			assert.False(t, p.seen(k), "%s by the listener between brokers", k.Name())
		}
	}
}
