package group

import (
	"fmt"
	"maps"
	"slices"

	"barnabas/broker/record"
)

// Loader gathers what the batches of an offsets partition say, from the first to
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

// Add reads the next batch. A record that cannot be read is counted and left out:
// the groups beside it must not suffer.
func (l *Loader) Add(b record.Batch) {
	for r, err := range b.Records(l.limits) {
		if err != nil {
			l.bad(b.BaseOffset(), err)
			return
		}
		l.Records++
		if b.IsControl() {
			l.marker(b.ProducerID(), &r)
			continue
		}
		if err := l.record(b, &r); err != nil {
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
	if l.committed[group] == nil {
		l.committed[group] = map[TopicPartition]offset{}
	}
	l.committed[group][tp] = v
}

func (l *Loader) record(b record.Batch, r *record.Record) error {
	k, err := readKey(r.Key)
	if err != nil {
		return err
	}
	k.group, k.tp.Topic = l.once(k.group), l.once(k.tp.Topic)
	if !k.isOffset {
		return l.group(k.group, r)
	}
	v := offset{at: r.Offset}
	if r.Value != nil {
		if v, err = readOffset(r.Value); err != nil {
			return err
		}
		v.at = r.Offset
	}
	switch {
	case b.IsTransactional():
		l.transactional(b.ProducerID(), k, r.Value != nil, &v)
	case r.Value == nil:
		delete(l.committed[k.group], k.tp)
	default:
		l.put(k.group, k.tp, v)
	}
	return nil
}

func (l *Loader) transactional(producer int64, k key, there bool, v *offset) {
	if l.open[producer] == nil {
		l.open[producer] = map[string]map[TopicPartition]*offset{}
	}
	if l.open[producer][k.group] == nil {
		l.open[producer][k.group] = map[TopicPartition]*offset{}
	}
	if !there {
		delete(l.open[producer][k.group], k.tp)
		return
	}
	l.open[producer][k.group][k.tp] = v
}

func (l *Loader) group(name string, r *record.Record) error {
	if r.Value == nil {
		delete(l.groups, name)
		return nil
	}
	g, err := readGroup(name, r.Value)
	if err != nil {
		return err
	}
	l.groups[name] = g
	return nil
}

func (l *Loader) once(s string) string {
	if known, found := l.names[s]; found {
		return known
	}
	l.names[s] = s
	return s
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
				of(name).beginOpen(producer, tp, v)
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
