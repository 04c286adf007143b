package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// inTurn lets several goroutines write.
type inTurn struct {
	mu sync.Mutex
	w  io.Writer
}

// Write waits until nobody else writes.
func (t *inTurn) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Write(p)
}

// unreachable warns of brokers that cannot be connected to. The tools that work on until they are stopped would try for ever and say nothing.
type unreachable struct {
	f    face
	mu   sync.Mutex
	said map[string]time.Time
	over bool // the client was closed; a connection that it was making may still end
}

// connect makes a client that warns on standard error, as the originals' log does. Others may write there at the same time: see inTurn.
func (f face) connect(settings map[string]string, more ...kgo.Opt) (*kgo.Client, error) {
	return connect(settings, append(more, kgo.WithHooks(newUnreachable(f)))...)
}

func newUnreachable(f face) *unreachable {
	return &unreachable{f: f, said: map[string]time.Time{}}
}

var (
	_ kgo.HookBrokerConnect = (*unreachable)(nil)
	_ kgo.HookClientClosed  = (*unreachable)(nil)
)

// OnClientClosed is called when the client was closed.
func (u *unreachable) OnClientClosed(*kgo.Client) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
}

// OnBrokerConnect is called for each attempt; each address is warned of once in a while.
func (u *unreachable) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	const pause = 10 * time.Second
	u.mu.Lock()
	defer u.mu.Unlock()
	where := net.JoinHostPort(meta.Host, fmt.Sprint(meta.Port))
	if err == nil || u.over || errors.Is(err, context.Canceled) || time.Since(u.said[where]) < pause {
		return
	}
	u.said[where] = time.Now()
	fmt.Fprintf(u.f.stderr, "%s%s (org.apache.kafka.clients.NetworkClient)\n", u.f.logLine("WARN"), connectionFault(meta.NodeID, where, err))
}

// connectionFault says that a broker cannot be reached and, where the address is not the user's own but what the broker tells its clients, who has to mend that.
func connectionFault(node int32, where string, err error) string {
	var dial *net.OpError
	if errors.As(err, &dial) {
		err = dial.Err
	}
	if node < 0 { // one of those that were given
		return fmt.Sprintf("Connection to node -1 (%s) could not be established. Node may not be available: %s", where, err)
	}
	return fmt.Sprintf("Connection to node %d (%s) could not be established. Node may not be available: %s. This is the address that the broker advertises (advertised.listeners); it has to be reachable from here",
		node, where, err)
}
