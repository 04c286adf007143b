package simulation

import (
	"errors"
	"slices"
	"time"

	"barnabas/controller"
	"barnabas/zkstate"
)

// zkClient is the model of zkstate.Client that one incarnation of a node holds: a session at a time, a connection to one
// of the servers at a time, requests pipelined in order, and answers and watch events in order.
type zkClient struct {
	w        *world
	e        *ensemble
	node     *node
	life     int // of the node
	session  *session
	sessions int // how many there were: the generation
	server   *server
	// link counts connections; what belongs to an earlier one is lost.
	link      int
	connected bool
	closed    bool
	lastZxid  int64
	// watches are those that were left and have not fired.
	watches []zkstate.Op
	// outstanding are units sent or waiting for a connection.
	outstanding []*unit
	arrives     time.Duration
	answered    time.Duration
}

// unit is what is sent as one request: a read, a write, or a multi.
type unit struct {
	ops    []zkstate.Op
	multi  bool
	fenced bool
	sent   int // link on which it was sent, 0 for not yet
	done   func([]zkstate.Result, error)
}

func (u *unit) reads() bool { return !u.multi && !u.ops[0].Kind.Writes() }

func newZKClient(n *node) *zkClient {
	c := &zkClient{w: n.s.w, e: n.s.zk, node: n, life: n.life}
	c.connect()
	return c
}

// connect tries to reach a server until one accepts.
func (c *zkClient) connect() {
	c.w.in(c.w.between(5*time.Millisecond, 60*time.Millisecond), func() {
		c.node.atLife(c.life, func() {
			if c.closed || c.connected {
				return
			}
			if c.node.cutFromZK {
				c.connect()
				return
			}
			c.reached(pick(c.w, c.e.servers))
		})
	})
}

func (c *zkClient) reached(s *server) {
	switch {
	case c.session != nil && c.session.expired:
		old := c.session
		c.session, c.watches = nil, nil
		c.failAll(zkstate.ErrSessionExpired)
		c.w.tell("node %d: session %d is over", c.node.id, old.id)
		c.node.sessionExpired(old.id)
		c.connect()
		return
	case c.session != nil && s.tree.zxid < c.lastZxid:
		c.connect() // the server is behind what this client has seen, and refuses
		return
	}
	c.link++
	c.connected, c.server = true, s
	fresh := c.session == nil
	if fresh {
		c.session = c.e.open(c)
		c.sessions++
	}
	c.e.heard(c.session)
	c.leaveWatchesAgain()
	for _, u := range c.outstanding {
		c.send(u)
	}
	if fresh {
		c.node.sessionStarted()
	}
}

// leaveWatchesAgain is what a client does on a new connection: the server tells at once what changed since.
func (c *zkClient) leaveWatchesAgain() {
	kept := c.watches
	c.watches = nil
	for _, op := range kept {
		n := c.server.tree.nodes[op.Path]
		var missed bool
		switch {
		case op.Kind == zkstate.OpChildren:
			missed = n == nil || n.pzxid > c.lastZxid
		case op.Kind == zkstate.OpExists && op.Version == watchedMissing:
			missed = n != nil
		default:
			missed = n == nil || n.mzxid > c.lastZxid
		}
		if missed {
			c.deliver(func() { c.node.changed(op.Path) })
			continue
		}
		c.watches = append(c.watches, op)
		c.server.leave(c, op)
	}
}

// watchedMissing marks, in the list of watches, one that was left on a node that did not exist.
const watchedMissing int32 = -2

// cut breaks the connection. What was sent may have been carried out or not.
func (c *zkClient) cut() {
	if !c.connected {
		return
	}
	c.connected = false
	c.server.forget(c)
	c.e.lostTouch(c.session)
	var kept []*unit
	for _, u := range c.outstanding {
		if u.reads() {
			kept = append(kept, u)
			continue
		}
		u := u
		c.w.in(0, func() { c.node.atLife(c.life, func() { u.done(nil, zkstate.ErrConnectionLoss) }) })
	}
	c.outstanding = kept
	c.connect()
}

func (c *zkClient) close() {
	c.closed = true
	if c.connected {
		c.connected = false
		c.server.forget(c)
	}
}

func (c *zkClient) failAll(err error) {
	failed := c.outstanding
	c.outstanding = nil
	for _, u := range failed {
		u.done(nil, err)
	}
}

// run carries out a batch of the core.
func (c *zkClient) run(b controller.ZKBatch, done func([]zkstate.Result, error)) {
	if c.session == nil || b.Generation != c.sessions {
		c.w.in(0, func() { c.node.atLife(c.life, func() { done(nil, zkstate.ErrSessionExpired) }) })
		return
	}
	fence := zkstate.Check(zkstate.ControllerEpochPath, b.Fence)
	if b.Multi {
		if c.node.s.planted("a controller is made first and its epoch then") && b.Ops[0].Path == zkstate.ControllerPath {
			c.one(b.Ops, nil, done)
			return
		}
		ops := b.Ops
		if b.Fence >= 0 {
			ops = append([]zkstate.Op{fence}, ops...)
		}
		c.submit(&unit{ops: ops, multi: true, fenced: b.Fence >= 0, done: func(results []zkstate.Result, err error) {
			results, err = unfence(results, err, b.Fence >= 0)
			done(results, err)
		}})
		return
	}
	results := make([]zkstate.Result, len(b.Ops))
	left := len(b.Ops)
	for i, op := range b.Ops {
		u := &unit{ops: []zkstate.Op{op}}
		if op.Kind.Writes() && b.Fence >= 0 {
			u.ops, u.multi, u.fenced = []zkstate.Op{fence, op}, true, true
		}
		u.done = func(rs []zkstate.Result, err error) {
			rs, err = unfence(rs, err, u.fenced)
			if len(rs) > 0 {
				results[i] = rs[0]
			}
			if err != nil {
				results[i].Err = err
			}
			if left--; left == 0 {
				done(results, nil)
			}
		}
		c.submit(u)
	}
}

// one carries out the operations of a multi one by one, as long as they succeed.
func (c *zkClient) one(ops []zkstate.Op, sofar []zkstate.Result, done func([]zkstate.Result, error)) {
	if len(ops) == 0 {
		done(sofar, nil)
		return
	}
	c.submit(&unit{ops: ops[:1], done: func(rs []zkstate.Result, err error) {
		if err != nil || len(rs) == 0 || rs[0].Err != nil {
			done(append(sofar, rs...), err)
			return
		}
		c.one(ops[1:], append(sofar, rs[0]), done)
	}})
}

// unfence takes the fence out of the results.
func unfence(results []zkstate.Result, err error, fenced bool) ([]zkstate.Result, error) {
	if !fenced || len(results) == 0 {
		return results, err
	}
	if errors.Is(results[0].Err, zkstate.ErrBadVersion) || errors.Is(results[0].Err, zkstate.ErrNoNode) {
		err = zkstate.ErrFenced
	}
	return results[1:], err
}

func (c *zkClient) submit(u *unit) {
	c.outstanding = append(c.outstanding, u)
	if c.connected {
		c.send(u)
	}
}

// send puts a unit on the wire, behind what was sent before.
func (c *zkClient) send(u *unit) {
	link := c.link
	u.sent = link
	c.arrives = max(c.arrives, c.w.now+c.w.between(200*time.Microsecond, 3*time.Millisecond))
	c.w.in(c.arrives-c.w.now, func() {
		if c.link == link && c.connected {
			c.server.take(c, link, u)
		}
	})
}

// take is the server's side of a request.
func (s *server) take(c *zkClient, link int, u *unit) {
	switch {
	case c.session.expired:
		c.cut()
	case u.reads() && u.ops[0].Kind != zkstate.OpSync:
		op := u.ops[0]
		r := s.tree.read(op)
		switch {
		case op.Watch && c.node.s.planted("watches are left after the read"):
			c.w.in(20*time.Millisecond, func() {
				if c.link == link && c.connected {
					c.watch(op, r)
				}
			})
		case op.Watch:
			c.watch(op, r)
		}
		c.reply(s, link, u, []zkstate.Result{r}, nil)
	default:
		s.e.w.in(s.e.w.between(200*time.Microsecond, 4*time.Millisecond), func() {
			// Once the client is connected anew, the leader refuses what came over the old connection.
			if c.session == nil || c.session.expired || c.link != link {
				return
			}
			results, err := s.e.write(c, u)
			s.when(s.e.leader.zxid, func() { c.reply(s, link, u, results, err) })
		})
	}
}

// write carries out a unit at the leader.
func (e *ensemble) write(c *zkClient, u *unit) ([]zkstate.Result, error) {
	if u.ops[0].Kind == zkstate.OpSync {
		return []zkstate.Result{{Path: u.ops[0].Path}}, nil
	}
	ops := u.ops
	if u.fenced && e.ignoreFence {
		ops = slices.Clone(ops)
		ops[0].Version = zkstate.AnyVersion
	}
	c.node.s.judgeWrite(c.node, u)
	return e.commit(c.session.id, ops)
}

func (c *zkClient) watch(op zkstate.Op, r zkstate.Result) {
	if errors.Is(r.Err, zkstate.ErrNoNode) {
		if op.Kind != zkstate.OpExists {
			return // only exists leaves a watch on a node that is not there
		}
		op.Version = watchedMissing
	}
	c.watches = slices.DeleteFunc(c.watches, func(o zkstate.Op) bool {
		return o.Path == op.Path && (o.Kind == zkstate.OpChildren) == (op.Kind == zkstate.OpChildren)
	})
	c.watches = append(c.watches, op)
	c.server.leave(c, op)
}

func (c *zkClient) watchFired(s *server, path string, children bool) {
	if !c.connected || c.server != s {
		return
	}
	c.watches = slices.DeleteFunc(c.watches, func(o zkstate.Op) bool {
		return o.Path == path && (o.Kind == zkstate.OpChildren) == children
	})
	zxid := s.tree.zxid
	link := c.link
	c.deliver(func() {
		if c.link == link {
			c.lastZxid = max(c.lastZxid, zxid)
		}
		c.node.changed(path)
	})
}

func (c *zkClient) reply(s *server, link int, u *unit, results []zkstate.Result, err error) {
	zxid := s.tree.zxid
	c.deliver(func() {
		if c.link != link || !c.connected || !slices.Contains(c.outstanding, u) {
			return
		}
		c.lastZxid = max(c.lastZxid, zxid)
		c.outstanding = slices.DeleteFunc(c.outstanding, func(o *unit) bool { return o == u })
		u.done(results, err)
	})
}

// deliver brings something from the server to the node, behind what came before.
func (c *zkClient) deliver(do func()) {
	c.answered = max(c.answered, c.w.now+c.w.between(200*time.Microsecond, 3*time.Millisecond))
	c.w.in(c.answered-c.w.now, func() { c.node.atLife(c.life, do) })
}
