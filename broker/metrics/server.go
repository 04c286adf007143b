package metrics

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sirupsen/logrus"
	"golang.org/x/net/netutil"
)

// Server answers GET /metrics. One goroutine accepts, one serves each connection; Close ends them.
type Server struct {
	http   http.Server
	socket net.Listener
	ended  chan struct{}
}

const (
	headerTime    = 5 * time.Second // to send a request in
	answerTime    = time.Minute     // to take the answer in
	idleTime      = 2 * time.Minute
	maxHeader     = 16 << 10
	scrapesAtOnce = 4
	connections   = 64 // at a time; whoever comes then waits. The broker's own connections and files need descriptors, too
	closeTime     = time.Second
)

// Serve listens on an address, host:port, and answers with what the registry holds.
func Serve(address string, r *Registry, log *logrus.Entry) (*Server, error) {
	socket, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	paths := http.NewServeMux()
	paths.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorLog: log, MaxRequestsInFlight: scrapesAtOnce}))
	s := &Server{socket: socket, ended: make(chan struct{})}
	s.http = http.Server{Handler: paths, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: answerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader}
	go func() {
		defer close(s.ended)
		if err := s.http.Serve(netutil.LimitListener(socket, connections)); !errors.Is(err, http.ErrServerClosed) {
			log.WithError(err).Error("metrics are not served any more")
		}
	}()
	return s, nil
}

// Addr is what the server is bound to.
func (s *Server) Addr() net.Addr { return s.socket.Addr() }

// Close lets a scrape that is under way end, for a second, and closes all connections.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	<-s.ended
	return err
}
