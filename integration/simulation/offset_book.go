package simulation

import (
	"fmt"

	"barnabas/broker/group"
)

// offsetBook is what was promised of the offsets of one group (I15, I16, H53, H54, H56).
//
// Of every attempt to commit it knows when it came to a coordinator. A coordinator appends in that order, and what a
// deposed one takes never counts, so of two commits the one that came later is the newer. Once a commit was answered with
// success, or shown to anybody, no older one may be shown.
type offsetBook struct {
	s        *Sim
	group    string
	attempts []*attempt
	arrivals int
	floor    map[group.TopicPartition]*attempt
	owners   map[ownership]string // in a generation
	latest   map[group.TopicPartition]owner
}

type attempt struct {
	number     int
	tp         group.TopicPartition
	offset     int64
	generation int32
	who        string
	arrived    int
}

type ownership struct {
	generation int32
	tp         group.TopicPartition
}

type owner struct {
	generation int32
	who        string
	since      int
}

func newOffsetBook(s *Sim, name string) *offsetBook {
	return &offsetBook{s: s, group: name, floor: map[group.TopicPartition]*attempt{}, owners: map[ownership]string{}, latest: map[group.TopicPartition]owner{}}
}

// identity is who a member is, whatever id it has.
func (m *member) identity(id string) string {
	if m.instance != nil {
		return *m.instance
	}
	return id
}

// owns: a partition has one owner in a generation (H56).
func (b *offsetBook) owns(m *member, id string, generation int32, list []group.TopicPartition) {
	who := m.identity(id)
	for _, tp := range list {
		in := ownership{generation, tp}
		other, taken := b.owners[in]
		b.s.check(!taken || other == who, "H56: %v of group %s is owned by %s and by %s in generation %d", tp, b.group, other, who, generation)
		b.owners[in] = who
		if l := b.latest[tp]; generation >= l.generation {
			if generation > l.generation {
				b.arrivals++
				b.latest[tp] = owner{generation, who, b.arrivals}
			}
		}
	}
}

func (b *offsetBook) attempt(m *member, tp group.TopicPartition, offset int64) *attempt {
	a := &attempt{number: len(b.attempts), tp: tp, offset: offset, generation: m.generation, who: m.identity(m.id)}
	b.attempts = append(b.attempts, a)
	return a
}

// note is what the commit has as its metadata, by which it is known again.
func (a *attempt) note() string { return fmt.Sprint(a.number) }

// repeats tells that two attempts are one commit, asked twice: their ways through a coordinator may cross, and whichever comes last in its log says the same.
func (a *attempt) repeats(other *attempt) bool {
	return a.offset == other.offset && a.who == other.who && a.generation == other.generation
}

func (b *offsetBook) delivered(a *attempt) {
	b.arrivals++
	a.arrived = b.arrivals
}

// accepted sees a coordinator answer a commit with success: it is not one of an earlier generation, where somebody else
// has the partition by now (I16).
func (b *offsetBook) accepted(a *attempt) {
	l := b.latest[a.tp]
	b.s.check(l.generation <= a.generation || l.who == a.who || l.since > a.arrived,
		"H56: the commit of %d for %v by %s in generation %d of group %s is accepted; %s owns it in generation %d", a.offset, a.tp, a.who, a.generation, b.group, l.who, l.generation)
}

// counts notes a commit that nothing older may be shown after.
func (b *offsetBook) counts(a *attempt) {
	if f := b.floor[a.tp]; f == nil || f.arrived < a.arrived {
		b.floor[a.tp] = a
	}
}

// shown sees a coordinator show a committed offset (I15). One that was deposed and does not know it yet shows what it had.
func (b *offsetBook) shown(n *node, o *group.FetchedOffset) {
	in := b.s.incarnation(coordinates(offsetsTopic, b.group))
	if o.Err != nil || !b.s.leadsNow(n, in) {
		return
	}
	f := b.floor[o.TopicPartition]
	if o.Offset == group.NoOffset {
		b.s.check(f == nil, "I15: node %d shows no offset of %v in group %s, where %d was committed", n.id, o.TopicPartition, b.group, floorOffset(f))
		return
	}
	var number int
	if _, err := fmt.Sscan(o.Metadata, &number); err != nil || number >= len(b.attempts) {
		b.s.check(false, "I15: node %d shows offset %d of %v in group %s with %q, which nobody committed", n.id, o.Offset, o.TopicPartition, b.group, o.Metadata)
		return
	}
	a := b.attempts[number]
	b.s.check(a.offset == o.Offset && a.tp == o.TopicPartition, "I15: node %d shows offset %d of %v, and with %q %d of %v was committed", n.id, o.Offset, o.TopicPartition, o.Metadata, a.offset, a.tp)
	b.s.check(f == nil || a.arrived >= f.arrived || a.repeats(f), "I15: node %d shows offset %d of %v in group %s after %d was committed or shown", n.id, o.Offset, o.TopicPartition, b.group, floorOffset(f))
	if f == nil || a.arrived > f.arrived {
		b.floor[o.TopicPartition] = a
	}
}

func floorOffset(a *attempt) int64 {
	if a == nil {
		return group.NoOffset
	}
	return a.offset
}
