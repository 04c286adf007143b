package netserver

import (
	"context"
	"net"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/broker/wire"
)

// Listener is one address to listen on.
type Listener struct {
	Name     string
	Host     string // empty: every interface
	Port     int    // 0: any free one, see Server.Addr
	Protocol string // PLAINTEXT
}

// Config holds a server's settings. Names in brackets are those of Kafka's broker settings.
type Config struct {
	Listeners           []Listener
	MaxRequestBytes     int32         // largest frame [socket.request.max.bytes]
	QueuedMaxBytes      int64         // bytes of requests being read or handled; 0: no limit [queued.max.request.bytes]
	MaxConnections      int           // 0: no limit [max.connections]
	MaxConnectionsPerIP int           // 0: no limit [max.connections.per.ip]
	IdleTimeout         time.Duration // 0: never [connections.max.idle.ms]
	SendBuffer          int           // of the socket; -1 or 0: the system's choice [socket.send.buffer.bytes]
	ReceiveBuffer       int           // of the socket; -1 or 0: the system's choice [socket.receive.buffer.bytes]
	Backlog             int           // connections waiting to be accepted; 0: as many as the system allows [socket.listen.backlog.size]
	Log                 *logrus.Entry
}

// Server accepts connections and exchanges frames with a handler.
type Server struct{}

// Listen binds every listener.
func Listen(cfg Config) (*Server, error) { panic("not yet") }

// Addr is the bound address of a listener, nil when there is none of that name.
func (s *Server) Addr(listener string) net.Addr { panic("not yet") }

// Serve starts to accept connections and returns at once.
func (s *Server) Serve(h wire.Handler) { panic("not yet") }

// Close stops accepting and reading, lets the requests that are being handled be answered until ctx is done, and
// returns when every connection is closed and every goroutine has ended.
func (s *Server) Close(ctx context.Context) error { panic("not yet") }
