package group

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"barnabas/broker/record"
)

// Loader gathers what the entries of an offsets partition say, from the first to
// the last, for a Core to begin with.
type Loader struct {
	limits record.Limits

	groups    map[string]*group // nil: removed
	committed map[string]map[TopicPartition]offset
	open      map[int64]map[string]map[TopicPartition]*offset
	names     map[string]string // one copy of each name of a group or topic

	// Bad counts records that could not be read and are left out; First says of
	// the first of them why.
	Bad   int
	First error
	// Records counts all.
	Records int
}

// NewLoader returns a Loader that has seen nothing.
func NewLoader(l record.Limits) *Loader {
	return &Loader{
		limits: l, groups: map[string]*group{}, committed: map[string]map[TopicPartition]offset{},
		open: map[int64]map[string]map[TopicPartition]*offset{}, names: map[string]string{},
	}
}

// Add reads the next entry. A record that cannot be read is counted and left out:
// the groups beside it must not suffer.
func (l *Loader) Add(e record.Entry) {
	b, isBatch := e.Batch()
	for r, err := range e.Records(l.limits) {
		if err != nil {
			l.bad(e.LastOffset(), err)
			return
		}
		l.Records++
		if e.IsControl() {
			l.marker(b.ProducerID(), &r)
			continue
		}
		producer := record.NoProducerID
		if isBatch && b.IsTransactional() {
			producer = b.ProducerID()
		}
		if err := l.record(producer, &r); err != nil {
			l.bad(r.Offset, err)
		}
	}
}

func (l *Loader) bad(offset int64, err error) {
	if l.Bad++; l.First == nil {
		l.First = fmt.Errorf("offset %d: %w", offset, err)
	}
}

// marker ends a transaction. Its commits count from where they stand in the log.
func (l *Loader) marker(producer int64, r *record.Record) {
	if kind, err := record.ParseControlType(r.Key); err == nil && kind == record.Commit {
		//purecore:anyorder each group for itself
		for group, pending := range l.open[producer] {
			//purecore:anyorder each partition for itself
			for tp, v := range pending {
				if known, found := l.committed[group][tp]; !found || known.at <= v.at {
					l.put(group, tp, *v)
				}
			}
		}
	}
	delete(l.open, producer)
}

func (l *Loader) put(group string, tp TopicPartition, v offset) {
	committed := l.committed[group]
	if committed == nil {
		committed = map[TopicPartition]offset{}
		l.committed[group] = committed
	}
	committed[tp] = v
}

func (l *Loader) record(producer int64, r *record.Record) error {
	k, err := readKey(r.Key)
	if err != nil {
		return err
	}
	k.group, k.tp.Topic = l.once(k.group), l.once(k.tp.Topic)
	if !k.isOffset {
		return l.group(k.group, r)
	}
	if r.Value == nil {
		l.remove(producer, k)
		return nil
	}
	v, err := readOffset(r.Value)
	if err != nil {
		return err
	}
	v.at = r.Offset
	if producer == record.NoProducerID {
		l.put(k.group, k.tp, v)
	} else {
		l.transactional(producer, k, v)
	}
	return nil
}

func (l *Loader) remove(producer int64, k key) {
	if producer == record.NoProducerID {
		delete(l.committed[k.group], k.tp)
	} else {
		delete(l.open[producer][k.group], k.tp)
	}
}

func (l *Loader) transactional(producer int64, k key, v offset) {
	if l.open[producer] == nil {
		l.open[producer] = map[string]map[TopicPartition]*offset{}
	}
	if l.open[producer][k.group] == nil {
		l.open[producer][k.group] = map[TopicPartition]*offset{}
	}
	l.open[producer][k.group][k.tp] = &v
}

func (l *Loader) group(name string, r *record.Record) error {
	if r.Value == nil {
		delete(l.groups, name)
		return nil
	}
	g, err := readGroup(name, bytes.Clone(r.Value)) // what members say and are told stays where it stands
	if err != nil {
		return err
	}
	l.groups[name] = g
	return nil
}

func (l *Loader) once(s string) string {
	known, found := l.names[s]
	if !found {
		known = strings.Clone(s)
		l.names[known] = known
	}
	return known
}

// Load implements coordinator.Loader.
func (l *Loader) Load(core *Core, nowMs int64) string {
	core.Loaded(nowMs, l)
	return fmt.Sprintf("%d groups, %d records", len(core.groups), l.Records)
}

// Loaded takes over what a Loader gathered. The Core must be new, and the Loader
// is not used again. Sessions begin now: the members do not know yet that they
// have another coordinator.
func (c *Core) Loaded(nowMs int64, l *Loader) {
	of := func(name string) *group {
		if l.groups[name] == nil {
			l.groups[name] = newGroup(name, nowMs)
		}
		return l.groups[name]
	}
	//purecore:anyorder each group for itself
	for name, committed := range l.committed {
		if len(committed) > 0 {
			of(name).committed = committed
		}
	}
	//purecore:anyorder each producer and group for itself
	for producer, groups := range l.open {
		//purecore:anyorder each producer and group for itself
		for name, pending := range groups {
			//purecore:anyorder each partition for itself
			for tp, v := range pending {
				c.beginOpen(of(name), producer, tp, v)
			}
		}
	}
	c.groups = l.groups
	for _, name := range slices.Sorted(maps.Keys(c.groups)) {
		g := c.groups[name]
		for _, m := range g.order {
			c.watch(g, m)
			c.heard(m, nowMs)
		}
		if len(g.members) > c.cfg.MaxSize {
			c.prepareRebalance(g, nowMs, "more members than group.max.size")
		}
	}
	if l.Bad > 0 {
		c.remark("%d records of the offsets topic cannot be read and are left out; the first at %v", l.Bad, l.First)
	}
}
