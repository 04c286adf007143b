package zkstate

import "context"

// Fenced writes for a controller. Every write is a multi whose first operation checks that /controller_epoch still has
// the version that the controller made when it was elected, so a controller that was deposed can change nothing.
type Fenced struct {
	client       *Client
	epochVersion int32
	generation   int
}

// Fence makes a Fenced for the controller whose election left /controller_epoch at this version. It belongs to the
// session of now.
func (c *Client) Fence(controllerEpochVersion int32) *Fenced {
	_, generation := c.Session()
	return &Fenced{client: c, epochVersion: controllerEpochVersion, generation: generation}
}

// Do is Client.Do with each write fenced on its own; reads are as they are. A write of a deposed controller answers
// ErrFenced.
func (f *Fenced) Do(ctx context.Context, ops []Op) ([]Result, error) { panic("not built") }

// Multi is Client.Multi with the fence before the operations; the results do not show it.
func (f *Fenced) Multi(ctx context.Context, ops []Op) ([]Result, error) { panic("not built") }
