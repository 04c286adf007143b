package simulation

import (
	"fmt"
	"slices"
	"strings"

	"barnabas/zkstate"
)

// ensemble is a model of ZooKeeper: writes are linear, in one log; three servers apply the log each in its own time, so
// that reads may be old; watches fire once, when the server on which they were left applies the change.

type znode struct {
	data                []byte
	czxid, mzxid, pzxid int64
	version, cversion   int32
	owner               int64
	children            map[string]bool
}

func (n *znode) stat() zkstate.Stat {
	return zkstate.Stat{Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid, Version: n.version, Cversion: n.cversion,
		EphemeralOwner: n.owner, DataLength: int32(len(n.data)), NumChildren: int32(len(n.children))}
}

// tree is the nodes as of a zxid.
type tree struct {
	nodes map[string]*znode
	zxid  int64
}

func newTree() *tree { return &tree{nodes: map[string]*znode{"/": {children: map[string]bool{}}}} }

// change is one effect of a committed transaction.
type change struct {
	kind  zkstate.OpKind // OpCreate, OpSet or OpDelete
	path  string
	data  []byte
	owner int64
}

// transaction is one entry of the log.
type transaction struct {
	zxid    int64
	changes []change
}

func parentOf(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i == 0 {
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}

// check says whether an operation can be carried out on the tree.
func (t *tree) check(op zkstate.Op) error {
	n := t.nodes[op.Path]
	switch op.Kind {
	case zkstate.OpCreate, zkstate.OpCreateEphemeral:
		parent, _ := parentOf(op.Path)
		switch p := t.nodes[parent]; {
		case p == nil:
			return zkstate.ErrNoNode
		case p.owner != 0:
			return zkstate.ErrNoChildrenForEphemerals
		case n != nil:
			return zkstate.ErrNodeExists
		}
		return nil
	}
	switch {
	case n == nil:
		return zkstate.ErrNoNode
	case op.Version != zkstate.AnyVersion && op.Version != n.version:
		return zkstate.ErrBadVersion
	case op.Kind == zkstate.OpDelete && len(n.children) > 0:
		return zkstate.ErrNotEmpty
	}
	return nil
}

// apply carries out one change.
func (t *tree) apply(zxid int64, c change) {
	parent, name := parentOf(c.path)
	switch c.kind {
	case zkstate.OpSet:
		n := t.nodes[c.path]
		n.data, n.mzxid = c.data, zxid
		n.version++
		return
	case zkstate.OpCreate:
		t.nodes[c.path] = &znode{data: c.data, czxid: zxid, mzxid: zxid, pzxid: zxid, owner: c.owner, children: map[string]bool{}}
		t.nodes[parent].children[name] = true
	case zkstate.OpDelete:
		delete(t.nodes, c.path)
		delete(t.nodes[parent].children, name)
	}
	t.nodes[parent].cversion++
	t.nodes[parent].pzxid = zxid
}

// read answers a read from the tree.
func (t *tree) read(op zkstate.Op) zkstate.Result {
	n := t.nodes[op.Path]
	r := zkstate.Result{Path: op.Path}
	switch {
	case op.Kind == zkstate.OpSync:
		return r
	case n == nil:
		r.Err = zkstate.ErrNoNode
		return r
	}
	r.Stat = n.stat()
	switch op.Kind {
	case zkstate.OpGet:
		r.Data = n.data
	case zkstate.OpChildren:
		r.Children = sortedNames(n.children)
	}
	return r
}

func sortedNames(set map[string]bool) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// decide carries out the operations of one session on the leader's tree, all or nothing, and gives the results and
// what changed.
func (t *tree) decide(zxid int64, session int64, ops []zkstate.Op) (results []zkstate.Result, done []change, err error) {
	// The operations see each other, so they are carried out one by one, and undone if one fails.
	type before struct {
		path   string
		node   *znode
		parent string
		pnode  znode
	}
	var undo []before
	results = make([]zkstate.Result, len(ops))
	for i, op := range ops {
		results[i].Path = op.Path
		if op.Kind == zkstate.OpCreateSequential {
			parent, _ := parentOf(op.Path)
			if p := t.nodes[parent]; p != nil {
				op.Path = fmt.Sprintf("%s%010d", op.Path, p.cversion)
			}
			op.Kind = zkstate.OpCreate
			results[i].Path = op.Path
		}
		if err = t.check(op); err != nil {
			for j := range results {
				results[j] = zkstate.Result{Path: ops[j].Path, Err: zkstate.ErrRolledBack}
			}
			results[i].Err = err
			for _, b := range slices.Backward(undo) {
				if b.node == nil {
					delete(t.nodes, b.path)
				} else {
					t.nodes[b.path] = b.node
				}
				restored := b.pnode
				t.nodes[b.parent] = &restored
			}
			return results, nil, err
		}
		if op.Kind == zkstate.OpCheck {
			continue
		}
		c := change{kind: op.Kind, path: op.Path, data: op.Data}
		if op.Kind == zkstate.OpCreateEphemeral {
			c.kind, c.owner = zkstate.OpCreate, session
		}
		parent, _ := parentOf(op.Path)
		b := before{path: op.Path, parent: parent, pnode: *t.nodes[parent]}
		b.pnode.children = copySet(b.pnode.children)
		if n := t.nodes[op.Path]; n != nil {
			kept := *n
			b.node = &kept
		}
		undo = append(undo, b)
		t.apply(zxid, c)
		done = append(done, c)
		if n := t.nodes[op.Path]; n != nil && op.Kind == zkstate.OpSet {
			results[i].Stat = n.stat()
		}
	}
	t.zxid = zxid
	return results, done, nil
}

func copySet(set map[string]bool) map[string]bool {
	out := make(map[string]bool, len(set))
	for name := range set {
		out[name] = true
	}
	return out
}
