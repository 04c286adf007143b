package controller

import (
	"bytes"
	"errors"
	"fmt"

	"barnabas/zkstate"
)

// unfenced is the ZKBatch.Fence of reads and of the election itself.
const unfenced int32 = -1

// batch suspends the running procedure until the operations are done.
func (c *Core) batch(b ZKBatch) ([]zkstate.Result, error) {
	if len(b.Ops) == 0 {
		return nil, nil
	}
	p := c.running
	if !p.yield(b) {
		return nil, errAbandoned
	}
	results, err := p.done.Results, p.done.Err
	p.done = ZKDone{}
	if gone(err) {
		return nil, errSessionGone
	}
	for _, r := range results {
		if gone(r.Err) {
			return nil, errSessionGone
		}
	}
	if err == nil && len(results) != len(b.Ops) {
		return nil, fmt.Errorf("%w: %d results for %d operations", errIllegalState, len(results), len(b.Ops))
	}
	return results, err
}

// sync makes the reads that follow see everything that was committed before it.
func (c *Core) sync() error {
	_, err := c.read(zkstate.Sync(zkstate.ControllerEpochPath))
	return err
}

func gone(err error) bool {
	return errors.Is(err, zkstate.ErrSessionExpired) || errors.Is(err, zkstate.ErrClosed)
}

// read runs reads, pipelined; each answers for itself.
func (c *Core) read(ops ...zkstate.Op) ([]zkstate.Result, error) {
	return c.batch(ZKBatch{Ops: ops, Fence: unfenced})
}

// write runs fenced writes, pipelined; each answers for itself. An operation whose connection broke before the answer
// came may have been carried out: it is read back and compared, and repeated only if it was not. A failed fence ends
// the procedure with zkstate.ErrFenced.
func (c *Core) write(ops ...zkstate.Op) ([]zkstate.Result, error) {
	results := make([]zkstate.Result, len(ops))
	pending := make([]int, len(ops))
	for i := range ops {
		pending[i] = i
	}
	for len(pending) > 0 {
		batch := make([]zkstate.Op, len(pending))
		for k, i := range pending {
			batch[k] = ops[i]
		}
		got, err := c.batch(ZKBatch{Ops: batch, Fence: c.cluster.epochVersion})
		if err != nil {
			return nil, err
		}
		var unsure []int
		for k, i := range pending {
			switch {
			case errors.Is(got[k].Err, zkstate.ErrFenced):
				return nil, got[k].Err
			case errors.Is(got[k].Err, zkstate.ErrConnectionLoss):
				unsure = append(unsure, i)
			default:
				results[i] = got[k]
			}
		}
		if pending, err = c.readBack(ops, unsure, results); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// readBack settles operations of unknown outcome and gives those that were not carried out. The session may be with
// another server by now, which has not seen them yet: it is brought up to date first.
func (c *Core) readBack(ops []zkstate.Op, unsure []int, results []zkstate.Result) ([]int, error) {
	if len(unsure) == 0 {
		return nil, nil
	}
	if err := c.sync(); err != nil {
		return nil, err
	}
	reads := make([]zkstate.Op, len(unsure))
	for k, i := range unsure {
		reads[k] = zkstate.Get(ops[i].Path)
	}
	found, err := c.read(reads...)
	if err != nil {
		return nil, err
	}
	var again []int
	for k, i := range unsure {
		switch r, settled := outcome(ops[i], found[k]); {
		case found[k].Err != nil && !errors.Is(found[k].Err, zkstate.ErrNoNode):
			results[i] = found[k]
		case settled:
			results[i] = r
		default:
			again = append(again, i)
		}
	}
	return again, nil
}

// outcome tells from the node as it is now whether an operation was carried out; false means that it was not.
func outcome(op zkstate.Op, now zkstate.Result) (zkstate.Result, bool) {
	missing := errors.Is(now.Err, zkstate.ErrNoNode)
	done := zkstate.Result{Path: op.Path, Stat: now.Stat}
	switch op.Kind {
	case zkstate.OpCreate:
		if !missing && !bytes.Equal(now.Data, op.Data) {
			done.Err = zkstate.ErrNodeExists
		}
		return done, !missing
	case zkstate.OpDelete:
		return done, missing
	case zkstate.OpSet:
		switch {
		case missing:
			done.Err = zkstate.ErrNoNode
			return done, true
		case bytes.Equal(now.Data, op.Data) && (op.Version == zkstate.AnyVersion || now.Stat.Version == op.Version+1):
			return done, true
		case op.Version != zkstate.AnyVersion && now.Stat.Version != op.Version:
			done.Err = zkstate.ErrBadVersion
			return done, true
		}
	}
	return done, false
}
