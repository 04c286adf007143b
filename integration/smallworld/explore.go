// Package smallworld explores everything that can happen in a small world, in every order, breadth first. The worlds are
// those of cores that cannot be copied, since what they wait for are functions: a state is its history, lived again each time.
// The worlds themselves are in the tests of the rooms whose cores they hold.
package smallworld

import (
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
)

// World is one history of a world while it is lived. It must be the same whenever the same events happen.
type World interface {
	// Do lets an event happen; false, with nothing changed, when it cannot. The error is a broken invariant.
	Do(event int) (happened bool, err error)
	// Key appends all that tells the state from others.
	Key(dst []byte) []byte
	// Heal ends all that is broken and expects that the world comes to rest as it should. The world is not used afterwards.
	Heal() error
}

// Found is what an exploration has found.
type Found struct {
	States, Depth int
	Whole         bool  // there are no other states
	Err           error // the first broken invariant on one of the shortest ways; nil: none
	History       []string
}

type step struct {
	parent int32
	event  uint8
}

type explorer struct {
	begin func() World
	names []string
	seed  maphash.Seed
	steps []step // by state
	seen  map[uint64]struct{}
}

// reached is a state that one event leads to.
type reached struct {
	step
	hash uint64
	err  error
}

// Explore looks at no more than limit states. The names are those of the events.
func Explore(names []string, begin func() World, limit int) Found {
	x := &explorer{begin: begin, names: names, seed: maphash.MakeSeed(), steps: []step{{parent: -1}}, seen: map[uint64]struct{}{}}
	x.seen[x.hash(begin(), nil)] = struct{}{}
	for from, depth := 0, 0; ; depth++ {
		to := len(x.steps)
		if from == to || to >= limit {
			return Found{States: to, Depth: depth, Whole: from == to}
		}
		for _, list := range x.level(from, to) {
			for _, r := range list {
				if r.err != nil {
					return Found{States: len(x.steps), Depth: depth, Err: r.err, History: append(x.history(r.parent), names[r.event])}
				}
				if _, old := x.seen[r.hash]; !old && len(x.steps) < limit {
					x.seen[r.hash] = struct{}{}
					x.steps = append(x.steps, r.step)
				}
			}
		}
		from = to
	}
}

// portion is how many states one goroutine takes at a time.
const portion = 64

// level is what one event makes of the states from..to-1, in their order. What was seen at an earlier level is left out.
func (x *explorer) level(from, to int) [][]reached {
	out := make([][]reached, (to-from+portion-1)/portion)
	next := make(chan int, len(out))
	for i := range out {
		next <- i
	}
	close(next)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			var buf []byte
			for i := range next {
				for s := from + i*portion; s < min(to, from+(i+1)*portion); s++ {
					out[i], buf = x.after(int32(s), out[i], buf)
				}
			}
		})
	}
	all.Wait()
	return out
}

// after appends what one event makes of a state.
func (x *explorer) after(state int32, out []reached, buf []byte) ([]reached, []byte) {
	var w World
	for e := range x.names {
		if w == nil {
			w = x.live(state)
		}
		r := reached{step: step{state, uint8(e)}}
		happened, err := do(w, e)
		if err == nil && happened {
			buf = w.Key(buf[:0])
			r.hash = maphash.Bytes(x.seed, buf)
			if _, old := x.seen[r.hash]; old {
				w = nil
				continue
			}
			err = heal(w)
		}
		if happened || err != nil {
			r.err, w = err, nil
			out = append(out, r)
		}
	}
	return out, buf
}

// do and heal take a core that gives up for a broken invariant.
func do(w World, event int) (happened bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return w.Do(event)
}

func heal(w World) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if err := w.Heal(); err != nil {
		return fmt.Errorf("after healing: %w", err)
	}
	return nil
}

func (x *explorer) hash(w World, buf []byte) uint64 { return maphash.Bytes(x.seed, w.Key(buf)) }

// way is the events that lead to a state.
func (x *explorer) way(state int32) []uint8 {
	var events []uint8
	for ; x.steps[state].parent >= 0; state = x.steps[state].parent {
		events = append(events, x.steps[state].event)
	}
	slices.Reverse(events)
	return events
}

func (x *explorer) live(state int32) World {
	w := x.begin()
	for _, e := range x.way(state) {
		if _, err := w.Do(int(e)); err != nil {
			panic(fmt.Sprintf("the world is not the same when it is lived again: %v", err))
		}
	}
	return w
}

func (x *explorer) history(state int32) []string {
	var names []string
	for _, e := range x.way(state) {
		names = append(names, x.names[e])
	}
	return names
}
