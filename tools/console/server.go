package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/net/netutil"
)

// Config is what a console is made of.
type Config struct {
	Listener  string       // host:port
	Cluster   Cluster      // stays its maker's
	Bootstrap string       // brokers' addresses as they stand in the command lines that are shown
	Users     Users        // none: whoever is on this machine may act, and from elsewhere nobody
	Ready     func() error // why whoever runs the console is not ready; nil: it always is
	Version   string
	Log       *logrus.Entry
}

// Server serves a console. One goroutine accepts, one serves each connection, one runs each view that is watched and one the keeper; Close ends them.
type Server struct {
	console *Console
	http    http.Server
	socket  net.Listener
	ended   chan struct{}
}

const (
	headerTime  = 5 * time.Second  // to send a request's header in
	bodyTime    = 30 * time.Second // to send the whole request in; longer than askTime, since what is being answered ends with it
	answerTime  = time.Minute      // to take an answer in; streams set their own
	askTime     = 20 * time.Second // that a page may ask brokers for
	idleTime    = 2 * time.Minute
	closeTime   = time.Second
	maxHeader   = 32 << 10
	maxBody     = 1 << 20
	maxURL      = 8 << 10
	connections = 256 // at a time; whoever comes then waits. The broker's own connections and files need descriptors, too
	asksAtOnce  = 64  // requests under way, besides streams
	scansAtOnce = 2   // each holds up to scanBytes
)

// Serve listens and answers until Close.
func Serve(cfg Config) (*Server, error) {
	c, err := newConsole(cfg)
	if err != nil {
		return nil, err
	}
	socket, err := net.Listen("tcp", cfg.Listener)
	if err != nil {
		c.close()
		return nil, err
	}
	c.guard.local = isLoopback(socket.Addr())
	s := &Server{console: c, socket: socket, ended: make(chan struct{})}
	s.http = http.Server{Handler: c.handler(), ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: answerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader}
	go func() {
		defer close(s.ended)
		if err := s.http.Serve(netutil.LimitListener(socket, connections)); !errors.Is(err, http.ErrServerClosed) {
			cfg.Log.WithError(err).Error("the console is not served any more")
		}
	}()
	return s, nil
}

// Addr is what the server is bound to.
func (s *Server) Addr() net.Addr { return s.socket.Addr() }

// Access says who may do what here, for the log and the banner.
func (s *Server) Access() string { return s.console.guard.String() }

// Close ends streams, lets requests under way end for a second, and closes all connections.
func (s *Server) Close() error {
	s.console.stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	<-s.ended
	s.console.close()
	return err
}

//go:embed templates static
var files embed.FS

// Console is what the handlers share.
type Console struct {
	Config
	guard     guard
	templates templates
	order     []page            // all pages, in the order of the navigation
	pages     map[string]page   // by path
	actions   map[string]action // by path
	places    chan struct{}     // one for each request under way, besides streams
	scans     chan struct{}     // one for each scan under way
	views     views
	picture   picture
	keeper    keeper

	running context.Context // ends with Close
	stop    context.CancelFunc
	crew    crew // what runs beside requests
}

// crew are the goroutines of a console. None starts once it is dismissed.
type crew struct {
	mu        sync.Mutex
	dismissed bool
	work      sync.WaitGroup
}

// start runs work on a goroutine of its own, unless the console is being closed.
func (c *crew) start(work func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dismissed {
		c.work.Go(work)
	}
	return !c.dismissed
}

// dismiss waits for all that run.
func (c *crew) dismiss() {
	c.mu.Lock()
	c.dismissed = true
	c.mu.Unlock()
	c.work.Wait()
}

func newConsole(cfg Config) (*Console, error) {
	c := &Console{Config: cfg, order: allPages(), pages: map[string]page{}, actions: map[string]action{}, places: make(chan struct{}, asksAtOnce), scans: make(chan struct{}, scansAtOnce)}
	c.running, c.stop = context.WithCancel(context.Background())
	for _, p := range c.order {
		c.pages[p.path] = p
	}
	for _, a := range allActions() {
		c.actions[a.path] = a
	}
	var err error
	if c.templates, err = parseTemplates(c.order); err != nil {
		return nil, fmt.Errorf("the console's templates: %w", err)
	}
	c.guard = newGuard(cfg)
	c.views.init()
	c.keeper.init()
	return c, nil
}

func (c *Console) close() {
	c.stop()
	c.crew.dismiss()
}

// handler is everything that is served. What has no path of its own is not found, and no path is a prefix.
func (c *Console) handler() http.Handler {
	paths := http.NewServeMux()
	paths.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	paths.HandleFunc("GET /readyz", c.readyz)
	for path := range c.pages {
		pattern := "GET " + path
		if path == "/" {
			pattern += "{$}"
		}
		paths.Handle(pattern, c.guard.reading(c.limited(c.servePage)))
	}
	for path := range c.actions {
		paths.Handle("GET "+path, c.guard.acting(c.limited(c.serveForm)))
		paths.Handle("POST "+path, c.guard.acting(c.limited(c.serveAction)))
	}
	for path, answer := range apiPaths {
		paths.Handle("GET "+path, c.guard.reading(c.limited(c.serveAPI(answer))))
	}
	paths.Handle("GET /events", c.guard.reading(c.serveEvents))
	paths.Handle("GET /static/", http.FileServerFS(files))
	return protected(paths)
}

// limited gives a request its time and its place among those under way.
func (c *Console) limited(serve handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request, who user) {
		select {
		case c.places <- struct{}{}:
			defer func() { <-c.places }()
		default:
			w.Header().Set("Retry-After", "1")
			plain(w, http.StatusServiceUnavailable, "too many requests are under way")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), askTime)
		defer cancel()
		c.keeper.visited()
		c.startKeeper()
		serve(w, r.WithContext(ctx), who)
	}
}

func (c *Console) readyz(w http.ResponseWriter, _ *http.Request) {
	if c.Ready != nil {
		if err := c.Ready(); err != nil {
			plain(w, http.StatusServiceUnavailable, err.Error())
			return
		}
	}
	plain(w, http.StatusOK, "ready")
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintln(w, text)
}
