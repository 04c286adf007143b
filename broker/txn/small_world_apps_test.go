package txn

// The applications of the small world, who do what transactional producers do.

import (
	"slices"
)

type wapp struct {
	producer Producer
	ready    bool
	waiting  bool
	fenced   bool
	added    bool
	now      *attempt
	done     int // attempts
	late     *wlate
}

type wlate struct {
	write
	guard *int
	by    Producer
}

var beginnings = []struct {
	name   string
	events []func(w *smallWorld, a *wapp)
}{
	{name: "nothing is written"},
	{name: "all is written", events: writeAll},
	{name: "markers are underway", events: append(slices.Clone(writeAll),
		func(w *smallWorld, a *wapp) { w.end(a, true) },
		func(w *smallWorld, _ *wapp) { w.committed() })},
}

var writeAll = []func(w *smallWorld, a *wapp){
	func(w *smallWorld, a *wapp) { w.begin(a) },
	func(w *smallWorld, _ *wapp) { w.committed() },
	func(w *smallWorld, a *wapp) { w.write(a) },
	func(w *smallWorld, a *wapp) { w.arrive(a) },
	func(w *smallWorld, a *wapp) { w.write(a) },
	func(w *smallWorld, a *wapp) { w.arrive(a) },
}

func (w *smallWorld) gaveUp(a *wapp, err error) bool {
	if err == nil || retriable(err) {
		return false
	}
	a.fenced = true
	return true
}

func (w *smallWorld) init(a *wapp) bool {
	if a.ready || a.waiting {
		return false
	}
	a.waiting = true
	w.core.Init(w.nowMs, &InitRequest{ID: "x", TimeoutMs: 60_000}, func(r InitResult) {
		a.waiting = false
		if !w.gaveUp(a, r.Err) && r.Err == nil {
			a.producer, a.ready = r.Producer, true
		}
	})
	w.take()
	return true
}

func (w *smallWorld) begin(a *wapp) bool {
	limit := 1
	if a == w.apps[0] {
		limit = worldAttempts
	}
	if !a.ready || a.fenced || a.waiting || a.added || a.now == nil && a.done == limit {
		return false
	}
	if a.now == nil {
		a.now = &attempt{serial: len(w.attempts)}
		w.attempts = append(w.attempts, a.now)
	}
	a.waiting = true
	w.core.AddPartitions(w.nowMs, &PartitionsRequest{ID: "x", Producer: a.producer, Partitions: worldPartitions}, func(err error) {
		a.waiting = false
		a.added = !w.gaveUp(a, err) && err == nil
	})
	w.take()
	return true
}

func (w *smallWorld) write(a *wapp) bool {
	if !a.added || a.fenced || a.waiting || a.late != nil || len(a.now.writes) == len(worldPartitions) {
		return false
	}
	at := len(a.now.writes)
	tp, shelf := worldPartitions[at], w.shelves[at]
	a.late = &wlate{write: write{tp, a.now.serial, at}, by: a.producer}
	if _, open := shelf.open[a.producer.ID]; open && w.plant != "writes are not verified" {
		return true
	}
	if shelf.guards[a.producer.ID] == nil {
		shelf.guards[a.producer.ID] = new(int)
	}
	a.late.guard = shelf.guards[a.producer.ID]
	var refused error
	w.core.Verify(&PartitionsRequest{ID: "x", Producer: a.producer, Partitions: []TopicPartition{tp}}, func(errs []error) { refused = errs[0] })
	w.take()
	if refused != nil {
		a.late = nil
		w.gaveUp(a, refused)
	}
	return true
}

func (w *smallWorld) arrive(a *wapp) bool {
	l := a.late
	if l == nil {
		return false
	}
	a.late = nil
	if err := w.append(l); err != nil {
		w.gaveUp(a, err)
		return true
	}
	a.now.writes = append(a.now.writes, l.write)
	return true
}

func (w *smallWorld) strayArrives() bool {
	if len(w.strays) == 0 {
		return false
	}
	l := w.strays[0]
	w.strays = w.strays[1:]
	_ = w.append(l)
	return true
}

func (w *smallWorld) append(l *wlate) error {
	shelf := w.shelves[l.tp.Partition]
	by, guard := l.by, l.guard
	if w.plant == "epochs of producers are not compared" {
		by.Epoch = max(by.Epoch, shelf.epochs[by.ID])
	}
	if w.plant == "writes are not verified" || w.plant == "epochs of producers are not compared" {
		guard = new(int)
		shelf.guards[by.ID] = guard
	}
	err := shelf.append(by, l.write, guard)
	if err == nil && w.apps[1].ready && by != w.apps[1].producer {
		w.fail("I12: an application writes whose place was taken")
	}
	return err
}

func (w *smallWorld) end(a *wapp, commit bool) bool {
	if !a.added || a.fenced || a.waiting || commit && (a.late != nil || len(a.now.writes) < 2) || !commit && a.now.asked {
		return false
	}
	x := a.now
	x.asked = x.asked || commit
	a.waiting = true
	w.core.End(w.nowMs, &EndRequest{ID: "x", Producer: a.producer, Commit: commit}, func(err error) {
		a.waiting = false
		if retriable(err) || w.gaveUp(a, err) {
			return
		}
		x.outcome = "aborted"
		if commit {
			x.outcome = "committed"
		}
		if a.late != nil {
			w.strays = append(w.strays, a.late)
		}
		a.now, a.late, a.added = nil, nil, false
		a.done++
	})
	w.take()
	return true
}
