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

// Fence makes a Fenced for the controller whose election left /controller_epoch at this version, in the session of now.
func (c *Client) Fence(controllerEpochVersion int32) *Fenced {
	_, generation := c.Session()
	return &Fenced{client: c, epochVersion: controllerEpochVersion, generation: generation}
}

// FenceIn is Fence for the session of a generation, such as Election.Generation.
func (c *Client) FenceIn(controllerEpochVersion int32, generation int) *Fenced {
	return &Fenced{client: c, epochVersion: controllerEpochVersion, generation: generation}
}

func (f *Fenced) check() Op { return Check(ControllerEpochPath, f.epochVersion) }

// Do is Client.Do with each write fenced on its own; reads are as they are. A write of a deposed controller answers
// ErrFenced. Stat and Path answer as in a multi.
func (f *Fenced) Do(ctx context.Context, ops []Op) ([]Result, error) {
	units := make([]unit, len(ops))
	for i, op := range ops {
		if op.Kind.Writes() {
			units[i] = unit{ops: []Op{f.check(), op}, multi: true}
		} else {
			units[i] = unit{ops: ops[i : i+1 : i+1]}
		}
	}
	outcomes, err := f.client.pipeline(WithGeneration(ctx, f.generation), ops, units)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(ops))
	for i, o := range outcomes {
		last := len(o.results) - 1
		results[i] = o.results[last]
		if units[i].multi {
			results[i].Err = f.unfence(o)
		}
	}
	return results, nil
}

// Multi is Client.Multi with the fence before the operations; the results do not show it.
func (f *Fenced) Multi(ctx context.Context, ops []Op) ([]Result, error) {
	all := append([]Op{f.check()}, ops...)
	outcomes, err := f.client.pipeline(WithGeneration(ctx, f.generation), []Op{{Kind: OpCheck, Path: "/"}}, []unit{{ops: all, multi: true}})
	if err != nil {
		return nil, err
	}
	return outcomes[0].results[1:], f.unfence(outcomes[0])
}

// unfence is the error of a fenced multi as its author understands it.
func (f *Fenced) unfence(o outcome) error {
	if first := o.results[0].Err; errors.Is(first, ErrBadVersion) || errors.Is(first, ErrNoNode) {
		return ErrFenced
	}
	return o.err
}
