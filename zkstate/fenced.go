package zkstate

import (
	"context"
	"errors"
)

// Fenced writes for a controller. Every write is a multi whose first operation checks that /controller_epoch still has
// the version that the controller made when it was elected, so a controller that was deposed can change nothing. It
// belongs to the session of the election: under any other it answers ErrSessionExpired.
type Fenced struct {
	client       *Client
	epochVersion int32
	generation   int
}

// FenceIn makes a Fenced for the controller whose election left /controller_epoch at this version, in the session of that
// generation.
func (c *Client) FenceIn(controllerEpochVersion int32, generation int) *Fenced {
	return &Fenced{client: c, epochVersion: controllerEpochVersion, generation: generation}
}

func (f *Fenced) check() Op { return Check(ControllerEpochPath, f.epochVersion) }

// Do is Client.Do with each write fenced; reads are as they are. A write of a deposed controller answers ErrFenced.
// Stat and Path answer as in a multi.
//
// A new controller writes the state of every partition, so neighbouring writes share a multi and its one check: a
// server takes a hundred in the time of two. When such a multi fails because of one of them, each is tried by itself,
// so the answers are what they would have been.
func (f *Fenced) Do(ctx context.Context, ops []Op) ([]Result, error) {
	batches := batch(ops)
	units := make([]unit, len(batches))
	for i, b := range batches {
		units[i] = unit{ops: ops[b.from:b.to]}
		if ops[b.from].Kind.Writes() {
			units[i] = unit{ops: append([]Op{f.check()}, units[i].ops...), multi: true, splits: b.to-b.from > 1}
		}
	}
	outcomes, err := f.client.pipeline(WithGeneration(ctx, f.generation), units, batchWaits(batches, order(ops)))
	if err != nil {
		return nil, err
	}
	results := make([]Result, 0, len(ops))
	for i, o := range outcomes {
		if units[i].multi {
			results = append(results, unfenced(o)...)
		} else {
			results = append(results, o.results...)
		}
	}
	return results, nil
}

// span is a run of operations, from inclusive, to exclusive.
type span struct{ from, to int }

// Bounds of a batch: enough to make the check and the disk's sync cheap, few enough that a server is not held up.
const (
	maxBatch      = 100
	maxBatchBytes = 128 << 10
)

// batch cuts operations into runs: neighbouring writes together, reads alone.
func batch(ops []Op) []span {
	var out []span
	size := 0
	for i, op := range ops {
		last := len(out) - 1
		cost := len(op.Path) + len(op.Data)
		if joins := last >= 0 && op.Kind.Writes() && op.Kind.inMulti() != nil && ops[i-1].Kind.Writes() && ops[i-1].Kind.inMulti() != nil; joins &&
			i-out[last].from < maxBatch && size+cost <= maxBatchBytes {
			out[last].to = i + 1
			size += cost
			continue
		}
		out = append(out, span{i, i + 1})
		size = cost
	}
	return out
}

// batchWaits lifts what single operations wait for to batches.
func batchWaits(batches []span, waits [][]int) [][]int {
	of := make([]int, len(waits))
	for i, b := range batches {
		for j := b.from; j < b.to; j++ {
			of[j] = i
		}
	}
	out := make([][]int, len(batches))
	for i, b := range batches {
		seen := map[int]bool{i: true} // within a multi the order is kept by itself
		for _, ws := range waits[b.from:b.to] {
			for _, w := range ws {
				if !seen[of[w]] {
					seen[of[w]] = true
					out[i] = append(out[i], of[w])
				}
			}
		}
	}
	return out
}

// unfenced are the results of a fenced unit without the check's.
func unfenced(o outcome) []Result {
	results := o.results[1:]
	if err := unfence(o); errors.Is(err, ErrFenced) {
		for i := range results {
			results[i].Err = ErrFenced
		}
	}
	return results
}

// Multi is Client.Multi with the fence before the operations; the results do not show it.
func (f *Fenced) Multi(ctx context.Context, ops []Op) ([]Result, error) {
	all := append([]Op{f.check()}, ops...)
	outcomes, err := f.client.pipeline(WithGeneration(ctx, f.generation), []unit{{ops: all, multi: true}}, make([][]int, 1))
	if err != nil {
		return nil, err
	}
	return outcomes[0].results[1:], unfence(outcomes[0])
}

// unfence is the error of a fenced multi as its author understands it.
func unfence(o outcome) error {
	if first := o.results[0].Err; errors.Is(first, ErrBadVersion) || errors.Is(first, ErrNoNode) {
		return ErrFenced
	}
	return o.err
}
