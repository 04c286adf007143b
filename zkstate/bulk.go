package zkstate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
)

// Much is read in bulk. A read costs a ZooKeeper server some 100 µs, whatever it reads: what is waited for when a controller takes over ten
// thousand partitions is ZooKeeper's own work. A multiRead (ZooKeeper 3.6) carries hundreds of reads for the price of a few. go-zookeeper lacks
// it, so it goes over a connection, and a session, of its own.
//
//   - what is read is no older than anything this client was answered before: the connection is brought up to date first (sync), as
//     its server is not bound by what the client's own session has seen
//   - only reads that leave no watch go this way, since a watch has to be the session's
//   - results are those of the plain way, and whatever goes wrong ends in the plain way, which knows how to wait and to tell
type bulk struct {
	lacking atomic.Bool // a server did not know multiRead
}

const (
	bulkFrom    = 100 // operations; for fewer a connection does not pay
	bulkRequest = 200 // reads in one request
)

var errNotInBulk = errors.New("zookeeper: not readable in bulk")

// fits tells whether operations may be read in bulk.
func (b *bulk) fits(ops []Op) bool {
	if len(ops) < bulkFrom || b.lacking.Load() {
		return false
	}
	for _, op := range ops {
		if op.Kind != OpGet || op.Watch || checkPath(op.Path) != nil {
			return false
		}
	}
	return true
}

// readInBulk answers ops, which fit; false means that they have to be read the plain way.
func (c *Client) readInBulk(ctx context.Context, ops []Op) ([]Result, bool) {
	g, err := c.generationOf(ctx)
	if err != nil || c.enter() != nil {
		return nil, false
	}
	defer c.stopped.Done()
	if g.wait(ctx) != nil {
		return nil, false
	}
	conn, err := c.dialForBulk(ctx, g)
	if err != nil {
		c.log.WithError(err).Debug("ZooKeeper: no connection for reading in bulk")
		return nil, false
	}
	defer context.AfterFunc(ctx, conn.Drop)()
	results, err := c.readOver(conn, ops)
	if unimplemented(err) {
		c.bulk.lacking.Store(true)
		c.log.Info("ZooKeeper: the server has no multiRead (it is older than 3.6): nodes are read one by one")
	}
	if cerr := conn.Close(); err == nil && cerr != nil {
		c.log.WithError(cerr).Debug("ZooKeeper: the session for reading in bulk is left to its timeout")
	}
	if err != nil || g.over() != nil || ctx.Err() != nil {
		return nil, false
	}
	return results, true
}

func unimplemented(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) && answer.Code == proto.Unimplemented
}

// dialForBulk opens a session with the server that has this client's, with its credentials.
func (c *Client) dialForBulk(ctx context.Context, g *generation) (*client.Conn, error) {
	conn, err := g.wire.open(ctx, g.conn.Server(), client.Session{}, g.wire.limit)
	if err != nil {
		return nil, err
	}
	for _, a := range c.cfg.Auth {
		if _, err := conn.Call(proto.OpAuth, &proto.AuthRequest{Scheme: a.Scheme, Auth: []byte(a.Credential)}); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// readOver reads everything over a connection, up to Config.MaxInFlight requests at a time.
func (c *Client) readOver(conn *client.Conn, ops []Op) ([]Result, error) {
	if _, err := conn.Call(proto.OpSync, &proto.PathRequest{Path: "/"}); err != nil {
		return nil, err
	}
	results := make([]Result, len(ops))
	requests := (len(ops) + bulkRequest - 1) / bulkRequest
	errs := make([]error, min(c.cfg.MaxInFlight, requests))
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := int(next.Add(1)-1) * bulkRequest; i < len(ops) && errs[w] == nil; i = int(next.Add(1)-1) * bulkRequest {
				end := min(i+bulkRequest, len(ops))
				errs[w] = c.multiRead(conn, ops[i:end], results[i:end])
			}
		})
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

// multiRead is one request.
func (c *Client) multiRead(conn *client.Conn, ops []Op, results []Result) error {
	req := &proto.MultiRequest{Ops: make([]proto.MultiOp, len(ops))}
	for i, op := range ops {
		req.Ops[i] = proto.MultiOp{Op: proto.OpGetData, Body: &proto.ReadRequest{Path: underChroot(c.chroot, op.Path)}}
	}
	r, err := conn.Call(proto.OpMultiRead, req)
	if err != nil {
		return err
	}
	for i, op := range ops {
		kind, _, _ := proto.Op(r.Int32()), r.Bool(), r.Int32()
		results[i] = Result{Path: op.Path}
		switch {
		case kind == proto.OpGetData:
			results[i].Data, results[i].Stat = r.Buffer(), Stat(r.Stat())
		case kind != proto.OpError:
			return fmt.Errorf("%w: an answer to operation %d", errNotInBulk, kind)
		default:
			switch code := proto.Code(r.Int32()); code {
			case proto.NoNode:
				results[i].Err = ErrNoNode
			case proto.NoAuth:
				results[i].Err = ErrNoAuth
			default:
				return fmt.Errorf("%w: error %d at %s", errNotInBulk, code, op.Path)
			}
		}
	}
	return r.Err()
}
