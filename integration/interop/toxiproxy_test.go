package interop

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// toxiproxy plays the part of Toxiproxy's interface that sarama's tests use: connections to each broker go through it, and can be delayed, reset or refused.
type toxiproxy struct {
	mu      sync.Mutex
	proxies map[string]*proxied
	http    *httptest.Server
}

// proxied is one broker behind the proxy, in Toxiproxy's own words.
type proxied struct {
	Name     string  `json:"name"`
	Listen   string  `json:"listen"`
	Upstream string  `json:"upstream"`
	Enabled  bool    `json:"enabled"`
	Toxics   []toxic `json:"toxics"`

	listener net.Listener
	conns    map[net.Conn]bool
}

type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Toxicity   float32        `json:"toxicity"`
	Attributes map[string]int `json:"attributes"`
}

// startToxiproxy listens for each name at its address and passes on what comes to the address behind it.
func startToxiproxy(t *testing.T, listen, upstream map[string]string) *toxiproxy {
	t.Helper()
	x := &toxiproxy{proxies: map[string]*proxied{}}
	for name, addr := range listen {
		p := &proxied{Name: name, Listen: addr, Upstream: upstream[name], Toxics: []toxic{}, conns: map[net.Conn]bool{}}
		x.proxies[name] = p
		require.NoError(t, x.enable(p, true))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /proxies/{name}", x.onProxy(func(*proxied, *http.Request) (any, error) { return nil, nil }))
	mux.HandleFunc("POST /proxies/{name}", x.onProxy(func(p *proxied, r *http.Request) (any, error) {
		var want proxied
		if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
			return nil, err
		}
		return nil, x.enable(p, want.Enabled)
	}))
	mux.HandleFunc("POST /proxies/{name}/toxics", x.onProxy(func(p *proxied, r *http.Request) (any, error) {
		var add toxic
		if err := json.NewDecoder(r.Body).Decode(&add); err != nil {
			return nil, err
		}
		p.Toxics = append(p.Toxics, add)
		return add, nil
	}))
	mux.HandleFunc("POST /reset", func(w http.ResponseWriter, _ *http.Request) {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, p := range x.proxies {
			p.Toxics = []toxic{}
			if err := x.enable(p, true); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})
	x.http = httptest.NewServer(mux)
	t.Cleanup(func() {
		x.http.Close()
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, p := range x.proxies {
			_ = x.enable(p, false)
		}
	})
	return x
}

// onProxy answers a request about one proxy with what do returns, or with the proxy itself.
func (x *toxiproxy) onProxy(do func(*proxied, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x.mu.Lock()
		defer x.mu.Unlock()
		p, ok := x.proxies[r.PathValue("name")]
		if !ok {
			http.Error(w, `{"error":"proxy not found","status":404}`, http.StatusNotFound)
			return
		}
		answer, err := do(p, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if answer == nil {
			answer = p
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// enable begins or ends to listen; the caller holds mu, or nobody else knows the proxy yet.
func (x *toxiproxy) enable(p *proxied, on bool) error {
	if on == p.Enabled {
		return nil
	}
	p.Enabled = on
	if !on {
		_ = p.listener.Close()
		for c := range p.conns {
			_ = c.Close()
		}
		clear(p.conns)
		return nil
	}
	l, err := net.Listen("tcp", p.Listen)
	if err != nil {
		return err
	}
	p.listener = l
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go x.serve(p, client)
		}
	}()
	return nil
}

func (x *toxiproxy) serve(p *proxied, client net.Conn) {
	broker, err := net.Dial("tcp", p.Upstream)
	if err != nil {
		_ = client.Close()
		return
	}
	x.mu.Lock()
	if p.Enabled {
		p.conns[client], p.conns[broker] = true, true
	} else {
		_, _ = client.Close(), broker.Close()
	}
	x.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { x.pass(p, broker, client, "upstream") })
	both.Go(func() { x.pass(p, client, broker, "downstream") })
	both.Wait()
	x.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, broker)
	x.mu.Unlock()
}

// pass copies one direction of a connection, as the toxics of the moment let it.
func (x *toxiproxy) pass(p *proxied, to, from net.Conn, stream string) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			delay, reset := x.toxicity(p, stream)
			if reset {
				_ = to.(*net.TCPConn).SetLinger(0)
				return
			}
			if delay > 0 {
				<-time.After(delay)
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if err == io.EOF {
				_ = to.(*net.TCPConn).CloseWrite()
			}
			return
		}
	}
}

func (x *toxiproxy) toxicity(p *proxied, stream string) (delay time.Duration, reset bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range p.Toxics {
		if t.Stream != "" && t.Stream != stream {
			continue
		}
		switch t.Type {
		case "latency":
			delay += time.Duration(t.Attributes["latency"]) * time.Millisecond
		case "reset_peer":
			reset = true
		}
	}
	return delay, reset
}
