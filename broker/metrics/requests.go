package metrics

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Requests counts and times the requests of each API. Its memory is bounded by the table of APIs.
type Requests struct {
	apis     []*apiRequests // by key; nil where there is none
	consumer timed          // of fetches
	follower timed

	windows sync.Mutex // over the windows of all timed
}

type apiRequests struct {
	timed
	versions []atomic.Int64
}

type timed struct {
	name string
	latency
	window window
}

// API is one row of the table of APIs.
type API struct {
	Key, MaxVersion int16
	Name            string // as Kafka spells it
}

// NewRequests makes the counters of a table of APIs.
func NewRequests(table []API) *Requests {
	r := &Requests{consumer: timed{name: "FetchConsumer"}, follower: timed{name: "FetchFollower"}}
	for _, api := range table {
		for int(api.Key) >= len(r.apis) {
			r.apis = append(r.apis, nil)
		}
		r.apis[api.Key] = &apiRequests{timed: timed{name: api.Name}, versions: make([]atomic.Int64, api.MaxVersion+1)}
	}
	return r
}

// Answered counts one request, from its arrival to when its answer was given to the connection. Of a key or version
// that is not in the table nothing is counted.
func (r *Requests) Answered(key, version int16, took time.Duration) {
	if key < 0 || int(key) >= len(r.apis) || r.apis[key] == nil {
		return
	}
	a := r.apis[key]
	if version >= 0 && int(version) < len(a.versions) {
		a.versions[version].Add(1)
		a.add(took)
	}
}

// Fetched is called beside Answered for a fetch, which Kafka also counts by who fetches.
func (r *Requests) Fetched(follower bool, took time.Duration) {
	if follower {
		r.follower.add(took)
	} else {
		r.consumer.add(took)
	}
}

// Collect is the Source. now is taken as the time of the scrape.
func (r *Requests) Collect(s *Scrape, now time.Time) {
	r.windows.Lock()
	defer r.windows.Unlock()
	for _, a := range r.apis {
		if a == nil || a.count.Load() == 0 {
			continue
		}
		for version := range a.versions {
			if n := a.versions[version].Load(); n > 0 {
				s.With(Label{"request", a.name}, Label{"version", strconv.Itoa(version)}).Set(&RequestsTotal, float64(n))
			}
		}
		a.collect(s, now)
	}
	for _, t := range []*timed{&r.consumer, &r.follower} {
		if t.count.Load() > 0 {
			t.collect(s, now)
		}
	}
}

// quantiles as the JMX exporter writes them: the digits of the percentile behind a point.
var quantiles = []struct {
	label string
	share float64
}{{"0.50", 0.50}, {"0.75", 0.75}, {"0.95", 0.95}, {"0.98", 0.98}, {"0.99", 0.99}, {"0.999", 0.999}}

func (t *timed) collect(s *Scrape, now time.Time) {
	request := Label{"request", t.name}
	at := s.With(request)
	at.Set(&RequestTimeCount, float64(t.count.Load()))
	at.Set(&RequestTimeSum, float64(t.micros.Load())/1000)
	recent := t.window.since(now, t.load())
	for _, q := range quantiles {
		s.With(request, Label{"quantile", q.label}).Set(&RequestTime, recent.quantile(q.share))
	}
}
