package console

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// A view is a page as somebody watches it: its address with all that is in it, and what the watcher may do. One loop makes its regions and sends those that have changed to all who watch it; it
// ends when the last has left. A watcher who comes later, or came back, is first sent what the regions are now, so that nothing has to be remembered for him.
//
// A watcher who does not take in what he is sent is dropped, and comes back by himself.

const (
	maxWatchers  = 64
	heartbeat    = 15 * time.Second
	writeTime    = 10 * time.Second // for a watcher to take in one message
	watcherQueue = 32               // messages
)

type views struct {
	mu       sync.Mutex
	byKey    map[string]*view
	watchers int
	seed     maphash.Seed
}

func (v *views) init() { v.byKey, v.seed = map[string]*view{}, maphash.MakeSeed() }

// view is guarded by views.mu.
type view struct {
	latest   map[string]message // by region, for those who come later
	watchers map[chan message]bool
	stop     context.CancelFunc
}

// message is one event of a stream.
type message struct {
	event string
	data  any
}

type regionData struct {
	Region string `json:"region"`
	HTML   string `json:"html"`
}

// serveEvents is GET /events?view=PATH, a stream of server-sent events: "region" with a part of the page that has changed, "seen" whenever the cluster was looked at, "fault" when that failed.
func (c *Console) serveEvents(w http.ResponseWriter, r *http.Request, who user) {
	target, err := url.Parse(r.URL.Query().Get("view"))
	if err != nil {
		plain(w, http.StatusBadRequest, "view is no address")
		return
	}
	p, known := c.pages[target.Path]
	if !known || p.pace == 0 {
		plain(w, http.StatusNotFound, "there is no such view")
		return
	}
	q := question{path: target.Path, values: target.Query(), who: who, again: true}
	messages, leave, ok := c.watch(p, q)
	if !ok {
		w.Header().Set("Retry-After", "10")
		plain(w, http.StatusServiceUnavailable, "too many watch; the page can be loaded again instead")
		return
	}
	defer leave()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	send := func(text string) bool {
		if out.SetWriteDeadline(time.Now().Add(writeTime)) != nil {
			return false
		}
		_, err := fmt.Fprint(w, text)
		return err == nil && out.Flush() == nil
	}
	if out.SetReadDeadline(time.Time{}) != nil || !send("retry: 2000\n\n") { // nothing more is read, and that must not end it
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		text := ": still here\n\n"
		select {
		case <-r.Context().Done():
			return
		case <-c.running.Done():
			return
		case <-beat.C:
		case m, open := <-messages:
			if !open {
				return
			}
			data, err := json.Marshal(m.data)
			if err != nil {
				return
			}
			text = fmt.Sprintf("event: %s\ndata: %s\n\n", m.event, data)
		}
		if !send(text) {
			return
		}
	}
}

// watch joins a view, and begins it for the first who comes. The channel is closed when the watcher is dropped.
func (c *Console) watch(p page, q question) (<-chan message, func(), bool) {
	key := q.key()
	c.views.mu.Lock()
	defer c.views.mu.Unlock()
	if c.views.watchers >= maxWatchers {
		return nil, nil, false
	}
	v := c.views.byKey[key]
	if v == nil {
		ctx, stop := context.WithCancel(c.running)
		v = &view{latest: map[string]message{}, watchers: map[chan message]bool{}, stop: stop}
		if !c.crew.start(func() { c.runView(ctx, v, p, q) }) {
			stop()
			return nil, nil, false
		}
		c.views.byKey[key] = v
	}
	mine := make(chan message, watcherQueue)
	for _, name := range p.live {
		if m, there := v.latest[name]; there {
			mine <- m
		}
	}
	v.watchers[mine] = true
	c.views.watchers++
	return mine, func() { c.leave(key, v, mine) }, true
}

func (c *Console) leave(key string, v *view, mine chan message) {
	c.views.mu.Lock()
	defer c.views.mu.Unlock()
	c.views.watchers--
	delete(v.watchers, mine)
	if len(v.watchers) == 0 && c.views.byKey[key] == v {
		delete(c.views.byKey, key)
		v.stop()
	}
}

// tell sends a message to all who watch a view.
func (c *Console) tell(v *view, region string, m message) {
	c.views.mu.Lock()
	defer c.views.mu.Unlock()
	if region != "" {
		v.latest[region] = m
	}
	for w := range v.watchers {
		select {
		case w <- m:
		default: // too slow: what was lost would leave his page wrong
			delete(v.watchers, w)
			close(w)
		}
	}
}

// runView looks again and again until nobody watches any more.
func (c *Console) runView(ctx context.Context, v *view, p page, q question) {
	sums := map[string]uint64{}
	pace := time.NewTicker(p.pace)
	defer pace.Stop()
	for {
		c.keeper.visited()
		c.startKeeper()
		c.lookOnce(ctx, v, p, q, sums)
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *Console) lookOnce(ctx context.Context, v *view, p page, q question, sums map[string]uint64) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	regions, err := c.regions(ctx, p, q)
	if err != nil {
		c.tell(v, "", message{"fault", err.Error()})
		return
	}
	for _, name := range p.live {
		html := regions[name]
		if sum := maphash.String(c.views.seed, html); sums[name] != sum {
			sums[name] = sum
			c.tell(v, name, message{"region", regionData{name, html}})
		}
	}
	c.tell(v, "", message{"seen", time.Now().UnixMilli()})
}
