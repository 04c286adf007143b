package metrics

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
)

// Kind is what may be done with the values of a family.
type Kind int8

const (
	Gauge   Kind = iota
	Counter      // only grows, while its labels are shown
)

// Family is all values of one name.
type Family struct {
	Name, Help string
	Kind       Kind
}

// Source adds the values of now to a scrape.
type Source func(*Scrape)

// Registry is where everything measured comes together. The zero value is not ready: use New.
type Registry struct {
	runtime *prometheus.Registry // of the Go process

	mu struct {
		sync.Mutex // held during a scrape: sources run one at a time
		sources    []Source
	}
}

// New returns a Registry that shows the process and its runtime.
func New() *Registry {
	r := &Registry{runtime: prometheus.NewRegistry()}
	r.runtime.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Add makes a source part of every scrape from now on. Two sources must not give the same family the same labels.
func (r *Registry) Add(s Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.sources = append(r.mu.sources, s)
}

// Gather implements prometheus.Gatherer: all families, in the order of their names.
//
// The families are made without the library's own metrics in between: it would hash, compare and sort each of the
// hundred thousand values that a broker of ten thousand partitions has.
func (r *Registry) Gather() ([]*dto.MetricFamily, error) {
	own := r.scrape()
	all, err := r.runtime.Gather()
	for _, f := range own.families {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all, err
}

func (r *Registry) scrape() *Scrape {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &Scrape{families: map[*Family]*dto.MetricFamily{}}
	for _, source := range r.mu.sources {
		source(s)
	}
	return s
}

// Scrape is one reading of everything.
type Scrape struct {
	families map[*Family]*dto.MetricFamily
}

// Set gives a family without labels its value.
func (s *Scrape) Set(f *Family, value float64) { Labelled{scrape: s}.Set(f, value) }

// Labelled is a place in a scrape: what is set there has the same labels.
type Labelled struct {
	scrape *Scrape
	labels []*dto.LabelPair
}

// Label is a name and a value.
type Label struct{ Name, Value string }

// With returns the place of some labels. The values of several families may be set there: they share the labels.
func (s *Scrape) With(labels ...Label) Labelled {
	slices.SortFunc(labels, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	pairs := make([]dto.LabelPair, len(labels))
	shared := make([]*dto.LabelPair, len(labels))
	texts := slices.Clone(labels) // one piece of memory that all the pointers point into
	for i := range texts {
		pairs[i].Name, pairs[i].Value = &texts[i].Name, &texts[i].Value
		shared[i] = &pairs[i]
	}
	return Labelled{scrape: s, labels: shared}
}

// Set gives a family its value at this place.
func (l Labelled) Set(f *Family, value float64) {
	family := l.scrape.families[f]
	if family == nil {
		family = &dto.MetricFamily{Name: &f.Name, Help: &f.Help, Type: f.Kind.dto()}
		l.scrape.families[f] = family
	}
	m := &dto.Metric{Label: l.labels}
	if f.Kind == Counter {
		m.Counter = &dto.Counter{Value: &value}
	} else {
		m.Gauge = &dto.Gauge{Value: &value}
	}
	family.Metric = append(family.Metric, m)
}

func (k Kind) dto() *dto.MetricType {
	if k == Counter {
		return dto.MetricType_COUNTER.Enum()
	}
	return dto.MetricType_GAUGE.Enum()
}
