package zkstate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
)

// Do runs operations, up to Config.MaxInFlight at a time, and answers each by itself in the order given. Operations
// that touch the same node, or a node and one above it, run in the order given unless both only read. While no
// server is reachable it waits. All operations belong to one session: that of now, or the next one if the last is
// over; when it expires they answer ErrSessionExpired. The error is not nil only when nothing was tried, because
// the client is closed, the generation that ctx asks for is over, or ctx is done; otherwise every Result says for itself.
func (c *Client) Do(ctx context.Context, ops []Op) ([]Result, error) {
	if c.bulk.fits(ops) {
		if results, done := c.readInBulk(ctx, ops); done {
			return results, nil
		}
	}
	units := make([]unit, len(ops))
	for i := range ops {
		units[i] = unit{ops: ops[i : i+1 : i+1]}
	}
	outcomes, err := c.pipeline(ctx, units, order(ops))
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(ops))
	for i, o := range outcomes {
		results[i] = o.results[0]
	}
	return results, nil
}

// Multi runs operations all or nothing. When it fails, the error is that of the operation that made it fail, and
// the results say which it was; the others have ErrRolledBack. Creates answer their path, sets their Stat.
func (c *Client) Multi(ctx context.Context, ops []Op) ([]Result, error) {
	outcomes, err := c.pipeline(ctx, []unit{{ops: ops, multi: true}}, make([][]int, 1))
	if err != nil {
		return nil, err
	}
	return outcomes[0].results, outcomes[0].err
}

// One runs a single operation; the error is the result's.
func (c *Client) One(ctx context.Context, op Op) (Result, error) {
	rs, err := c.Do(ctx, []Op{op})
	if err != nil {
		return Result{Err: err}, err
	}
	return rs[0], rs[0].Err
}

// unit is what goes to the server as one request.
type unit struct {
	ops    []Op
	multi  bool
	splits bool // when the multi is refused, each operation is tried alone, behind the first one as its check
}

func (u unit) writes() bool {
	for _, op := range u.ops {
		if op.Kind.Writes() {
			return true
		}
	}
	return false
}

type outcome struct {
	results []Result
	err     error
}

func (u unit) failed(err error) outcome {
	o := outcome{results: make([]Result, len(u.ops)), err: err}
	for i, op := range u.ops {
		o.results[i] = Result{Err: err, Path: op.Path}
	}
	return o
}

// pipeline runs units concurrently, each after those that waits names for it, which all come before it.
//
// A request cannot be called back once it is on its way. So when ctx is done, pipeline returns while workers may
// still wait for an answer: they finish by themselves, within the session timeout, and what they bring is dropped.
func (c *Client) pipeline(ctx context.Context, units []unit, waits [][]int) ([]outcome, error) {
	if len(units) == 0 {
		return nil, nil
	}
	g, err := c.generationOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.stopped.Done()
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	r := &pipelined{client: c, g: g, ctx: ctx, units: units, waits: waits,
		finished: make([]chan struct{}, len(units)), arrived: make(chan numbered, len(units)), started: make([]atomic.Bool, len(units))}
	for i := range r.finished {
		r.finished[i] = make(chan struct{})
	}
	for range min(c.cfg.MaxInFlight, len(units)) {
		c.stopped.Add(1)
		go r.work()
	}
	return r.collect(), nil
}

// enter counts a call that Close has to wait for.
func (c *Client) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return ErrClosed
	}
	c.stopped.Add(1)
	return nil
}

type numbered struct {
	i int
	outcome
}

// pipelined is one call of pipeline.
type pipelined struct {
	client   *Client
	g        *generation
	ctx      context.Context
	units    []unit
	waits    [][]int
	next     atomic.Int64
	started  []atomic.Bool   // handed to the connection
	finished []chan struct{} // closed when the unit has its outcome
	arrived  chan numbered   // with room for every unit, so that no worker is ever held up
}

func (r *pipelined) work() {
	defer r.client.stopped.Done()
	for {
		i := int(r.next.Add(1) - 1)
		if i >= len(r.units) {
			return
		}
		for _, j := range r.waits[i] {
			<-r.finished[j] // j < i, so a worker has it, and it ends
		}
		o := r.client.attempt(r.ctx, r.g, r.units[i], &r.started[i])
		r.arrived <- numbered{i, o}
		close(r.finished[i])
	}
}

func (r *pipelined) collect() []outcome {
	outcomes := make([]outcome, len(r.units))
	for n := 0; n < len(r.units); n++ {
		select {
		case a := <-r.arrived:
			outcomes[a.i] = a.outcome
			continue
		case <-r.ctx.Done():
		}
		for i := range outcomes {
			if outcomes[i].results != nil {
				continue
			}
			err := r.ctx.Err()
			if r.started[i].Load() && r.units[i].writes() {
				err = fmt.Errorf("%w: %w", ErrConnectionLoss, err)
			}
			outcomes[i] = r.units[i].failed(err)
		}
		return outcomes
	}
	return outcomes
}

// attempt runs one unit until it has an answer that can be given: reads, and whatever was surely not sent, are tried
// again for as long as the session may live.
func (c *Client) attempt(ctx context.Context, g *generation, u unit, started *atomic.Bool) outcome {
	if err := c.checkUnit(u); err != nil {
		if u.splits {
			return c.attemptEach(ctx, g, u, started)
		}
		return u.failed(err)
	}
	for {
		if err := g.wait(ctx); err != nil {
			return u.failed(err)
		}
		started.Store(true)
		o := c.send(g, u)
		switch {
		case errors.Is(o.err, zk.ErrNoServer), errors.Is(o.err, zk.ErrSessionExpired), errors.Is(o.err, zk.ErrSessionMoved):
			// The connection gave up before sending, or the server refused to look at the request.
			started.Store(false)
		case !lostAnswer(o.err):
			if u.splits && o.err != nil && unfence(o) != ErrFenced {
				return c.attemptEach(ctx, g, u, started)
			}
			return o
		case g.over() != nil:
			return u.failed(g.over())
		case u.writes():
			return u.failed(ErrConnectionLoss)
		}
		if err := g.pause(ctx); err != nil {
			return u.failed(err)
		}
	}
}

// attemptEach runs the operations of a unit that was refused as a whole, in order, each behind the unit's check.
func (c *Client) attemptEach(ctx context.Context, g *generation, u unit, started *atomic.Bool) outcome {
	all := outcome{results: make([]Result, 1, len(u.ops))}
	for _, op := range u.ops[1:] {
		o := c.attempt(ctx, g, unit{ops: []Op{u.ops[0], op}, multi: true}, started)
		r := o.results[1]
		if r.Err != nil {
			r.Err = unfence(o)
		}
		all.results = append(all.results, r)
	}
	return all
}

func (c *Client) checkUnit(u unit) error {
	size := 0
	for _, op := range u.ops {
		if err := checkPath(op.Path); err != nil {
			return err
		}
		size += len(c.chroot) + len(op.Path) + len(op.Data) + 128
		if u.multi && op.Kind.inMulti() == nil {
			return fmt.Errorf("%w: %v cannot be part of a multi", ErrBadArguments, op.Kind)
		}
		if !u.multi && op.Kind == OpCheck {
			return fmt.Errorf("%w: check stands only in a multi", ErrBadArguments)
		}
	}
	if size > c.cfg.MaxPacketBytes {
		return fmt.Errorf("%w: %d bytes at %s", ErrTooLarge, size, u.ops[0].Path)
	}
	return nil
}

// send gives one unit to go-zookeeper and waits for the answer.
func (c *Client) send(g *generation, u unit) outcome {
	if u.multi {
		return c.sendMulti(g, u)
	}
	r := c.sendOne(g, u.ops[0])
	r.Err = translate(r.Err)
	return outcome{results: []Result{r}, err: r.Err}
}

func (c *Client) sendOne(g *generation, op Op) (r Result) {
	conn, path := g.conn, underChroot(c.chroot, op.Path)
	r.Path = op.Path
	var stat *zk.Stat
	switch op.Kind {
	case OpGet:
		if op.Watch {
			r.Data, stat, _, r.Err = conn.GetW(path)
		} else {
			r.Data, stat, r.Err = conn.Get(path)
		}
	case OpExists:
		var found bool
		if op.Watch {
			found, stat, _, r.Err = conn.ExistsW(path)
		} else {
			found, stat, r.Err = conn.Exists(path)
		}
		if r.Err == nil && !found {
			r.Err = zk.ErrNoNode
		}
	case OpChildren:
		if op.Watch {
			r.Children, stat, _, r.Err = conn.ChildrenW(path)
		} else {
			r.Children, stat, r.Err = conn.Children(path)
		}
	case OpCreate, OpCreateEphemeral, OpCreateSequential, OpCreateEphemeralSequential:
		var made string
		made, r.Err = conn.Create(path, op.Data, createFlags[op.Kind], c.aclFor(op))
		if r.Err == nil {
			r.Path = fromChroot(c.chroot, made)
		}
	case OpSet:
		stat, r.Err = conn.Set(path, op.Data, op.Version)
	case OpDelete:
		r.Err = conn.Delete(path, op.Version)
	case OpGetACL:
		var acl []zk.ACL
		acl, stat, r.Err = conn.GetACL(path)
		for _, a := range acl {
			r.ACL = append(r.ACL, ACL{Perms: a.Perms, Scheme: a.Scheme, ID: a.ID})
		}
	case OpSetACL:
		stat, r.Err = conn.SetACL(path, c.aclFor(op), op.Version)
	case OpSync:
		_, r.Err = conn.Sync(path)
	default:
		r.Err = fmt.Errorf("%w: %v", ErrBadArguments, op.Kind)
	}
	if r.Err == nil && stat != nil {
		r.Stat = Stat(*stat)
	}
	return r
}

var createFlags = map[OpKind]int32{OpCreate: 0, OpCreateEphemeral: zk.FlagEphemeral, OpCreateSequential: zk.FlagSequence,
	OpCreateEphemeralSequential: zk.FlagEphemeral | zk.FlagSequence}

// inMulti is the request that stands for this kind inside a multi, or nil when there is none.
func (k OpKind) inMulti() func(c *Client, path string, op Op) any {
	switch k {
	case OpCreate, OpCreateEphemeral, OpCreateSequential, OpCreateEphemeralSequential:
		return func(c *Client, path string, op Op) any {
			return &zk.CreateRequest{Path: path, Data: op.Data, Acl: c.aclFor(op), Flags: createFlags[op.Kind]}
		}
	case OpSet:
		return func(_ *Client, path string, op Op) any {
			return &zk.SetDataRequest{Path: path, Data: op.Data, Version: op.Version}
		}
	case OpDelete:
		return func(_ *Client, path string, op Op) any { return &zk.DeleteRequest{Path: path, Version: op.Version} }
	case OpCheck:
		return func(_ *Client, path string, op Op) any {
			return &zk.CheckVersionRequest{Path: path, Version: op.Version}
		}
	}
	return nil
}

func (c *Client) sendMulti(g *generation, u unit) outcome {
	requests := make([]any, len(u.ops))
	for i, op := range u.ops {
		requests[i] = op.Kind.inMulti()(c, underChroot(c.chroot, op.Path), op)
	}
	answers, err := g.conn.Multi(requests...)
	err = translate(err)
	if err != nil && len(answers) != len(u.ops) {
		return u.failed(err) // no answer, or one that refuses the request as a whole
	}
	o := outcome{results: make([]Result, len(u.ops)), err: err}
	for i, a := range answers {
		r := Result{Path: u.ops[i].Path}
		switch {
		case err == nil:
			if a.Stat != nil {
				r.Stat = Stat(*a.Stat)
			}
			if a.String != "" {
				r.Path = fromChroot(c.chroot, a.String)
			}
		case a.Error != nil && errors.Is(translate(a.Error), err):
			r.Err = err
		default:
			r.Err = ErrRolledBack
		}
		o.results[i] = r
	}
	return o
}

var translations = map[error]error{zk.ErrNoNode: ErrNoNode, zk.ErrNodeExists: ErrNodeExists, zk.ErrBadVersion: ErrBadVersion,
	zk.ErrNotEmpty: ErrNotEmpty, zk.ErrNoChildrenForEphemerals: ErrNoChildrenForEphemerals, zk.ErrNoAuth: ErrNoAuth,
	zk.ErrInvalidACL: ErrInvalidACL, zk.ErrAuthFailed: ErrAuthFailed, zk.ErrBadArguments: ErrBadArguments,
	zk.ErrShortBuffer: ErrTooLarge, zk.ErrInvalidPath: ErrBadArguments}

// unnamed begins the text of go-zookeeper's error for the codes that it has no name for.
const unnamed = "unknown error: "

// Codes that mean the server gave up rather than decided.
const (
	codeConnectionLoss   = "-4"
	codeOperationTimeout = "-7"
	codeRequestTimeout   = "-122"
)

func translate(err error) error {
	if err == nil {
		return nil
	}
	if ours, ok := translations[err]; ok {
		return ours
	}
	code, ok := strings.CutPrefix(err.Error(), unnamed)
	if !ok {
		return err
	}
	switch code {
	case codeConnectionLoss, codeOperationTimeout, codeRequestTimeout:
		return err
	}
	return fmt.Errorf("%w: code %s", ErrServer, code)
}

// answered are the errors with which a server, or go-zookeeper before sending, answers a request.
var answered = []error{ErrNoNode, ErrNodeExists, ErrBadVersion, ErrNotEmpty, ErrNoChildrenForEphemerals, ErrNoAuth,
	ErrInvalidACL, ErrAuthFailed, ErrBadArguments, ErrTooLarge, ErrServer, zk.ErrAPIError}

// lostAnswer tells whether an error leaves open what the server did. Whatever is not known to be an answer counts as
// lost: go-zookeeper also passes on raw errors of the connection.
func lostAnswer(err error) bool {
	if err == nil {
		return false
	}
	for _, a := range answered {
		if errors.Is(err, a) {
			return false
		}
	}
	return true
}
