package core

import (
	"fmt"
	"maps"
	"slices"

	"barnabas/zkstate/embedded/proto"
)

// txn is one transaction in the making: one zxid, one moment. Its operations apply at once, in order, so that a later one of a
// multi sees the earlier ones; each leaves behind how to take it back. Watches fire at commit, in the order of the changes.
type txn struct {
	m      *Machine
	c      *conn // nil: the server itself
	zxid   int64
	wall   int64
	undo   []func()
	events []change
}

// change is something a watch may see; acl guards who may be told.
type change struct {
	event proto.EventType
	path  string
	acl   []proto.ACL
}

func (m *Machine) begin(now Now, c *conn) *txn {
	m.zxid++
	m.dirty.zxid = true
	return &txn{m: m, c: c, zxid: m.zxid, wall: now.Wall}
}

func (t *txn) commit() {
	for _, e := range t.events {
		t.m.trigger(e)
	}
}

func (t *txn) rollback() {
	for _, undo := range slices.Backward(t.undo) {
		undo()
	}
}

// session of a transaction that a client asked for.
func (t *txn) sessionID() int64 { return t.c.session.id }

func (t *txn) allowed(n *node, perm int32) bool { return t.m.permits(t.c, n.acl, perm) }

// The flags of create: two bits, and three modes that no bits make up.
const (
	flagEphemeral     = 1
	flagSequential    = 2
	flagContainer     = 4
	flagTTL           = 5
	flagSequentialTTL = 6
)

// createMode splits the flags of a create; ok is false for a number that is none of the seven modes.
func createMode(flags int32) (ephemeral, sequential, ttl, ok bool) {
	switch flags {
	case 0, flagEphemeral, flagSequential, flagEphemeral | flagSequential:
		return flags&flagEphemeral != 0, flags&flagSequential != 0, false, true
	case flagContainer:
		return false, false, false, true
	case flagTTL, flagSequentialTTL:
		return false, flags == flagSequentialTTL, true, true
	}
	return false, false, false, false
}

// create adds a node. The order of the checks is ZooKeeper's, for it decides which of several errors a client sees.
func (t *txn) create(r *proto.CreateRequest) (string, proto.Stat, proto.Code) {
	ephemeral, sequential, ttl, ok := createMode(r.Flags)
	switch {
	case !ok:
		return "", proto.Stat{}, proto.BadArguments
	case ttl && !t.m.opt.ExtendedTypes:
		return "", proto.Stat{}, proto.Unimplemented
	case ttl && (r.TTL <= 0 || r.TTL > ttlMax), !ttl && r.TTL >= 0, !creatable(r.Path):
		return "", proto.Stat{}, proto.BadArguments
	}
	acl, code := t.m.effectiveACL(t.c, r.ACL)
	if code != proto.OK {
		return "", proto.Stat{}, code
	}
	parentPath := parentOf(r.Path)
	parent := t.m.tree.nodes[parentPath]
	if parent == nil {
		return "", proto.Stat{}, proto.NoNode
	}
	if !t.allowed(parent, proto.PermCreate) {
		return "", proto.Stat{}, proto.NoAuth
	}
	path := r.Path
	if sequential {
		path += fmt.Sprintf("%010d", parent.meta.Creates)
	}
	switch {
	case !validPath(path):
		return "", proto.Stat{}, proto.BadArguments
	case t.m.tree.nodes[path] != nil:
		return "", proto.Stat{}, proto.NodeExists
	case parent.isEphemeral():
		return "", proto.Stat{}, proto.NoChildrenForEphemerals
	}
	n := &node{data: r.Data, acl: acl, meta: Meta{Czxid: t.zxid, Mzxid: t.zxid, Pzxid: t.zxid, Ctime: t.wall, Mtime: t.wall}}
	// The operation, not the flag, makes a container or a TTL node; the flag alone, sent with a plain create, does not.
	switch {
	case r.Op == proto.OpCreateContainer:
		n.meta.Owner = containerOwner
	case r.Op == proto.OpCreateTTL:
		n.meta.Owner = int64(ttlMask | uint64(r.TTL))
	case ephemeral:
		n.meta.Owner = t.sessionID()
	}
	t.add(path, n, parentPath, parent)
	return path, n.stat(), proto.OK
}

func (t *txn) add(path string, n *node, parentPath string, parent *node) {
	before := parent.meta
	parent.meta.Creates++
	parent.meta.Pzxid = t.zxid
	t.m.tree.put(path, n)
	t.m.dirty.node(path, true)
	t.m.dirty.node(parentPath, false)
	t.undo = append(t.undo, func() {
		t.m.tree.drop(path)
		parent.meta = before
	})
	t.events = append(t.events, change{proto.NodeCreated, path, n.acl}, change{proto.NodeChildrenChanged, parentPath, parent.acl})
}

// delete removes a node that has no children.
func (t *txn) delete(r *proto.DeleteRequest) proto.Code {
	if !deletable(r.Path) {
		return proto.BadArguments
	}
	parent := t.m.tree.nodes[parentOf(r.Path)]
	if parent == nil {
		return proto.NoNode
	}
	if !t.allowed(parent, proto.PermDelete) {
		return proto.NoAuth
	}
	n := t.m.tree.nodes[r.Path]
	switch {
	case n == nil:
		return proto.NoNode
	case r.Version != -1 && r.Version != n.meta.Version:
		return proto.BadVersion
	case len(n.children) > 0:
		return proto.NotEmpty
	}
	t.remove(r.Path)
	return proto.OK
}

// deleteContainer removes an empty node that no session owns: what the sweep does, open to clients as in ZooKeeper. Unlike
// ZooKeeper it asks for the right to delete.
func (t *txn) deleteContainer(path string) proto.Code {
	if !deletable(path) {
		return proto.BadArguments
	}
	n, parent := t.m.tree.nodes[path], t.m.tree.nodes[parentOf(path)]
	switch {
	case n == nil:
		return proto.NoNode
	case len(n.children) > 0:
		return proto.NotEmpty
	case n.isEphemeral():
		return proto.BadVersion
	case !t.allowed(parent, proto.PermDelete):
		return proto.NoAuth
	}
	t.remove(path)
	return proto.OK
}

// remove takes an existing leaf out of the tree.
func (t *txn) remove(path string) {
	parentPath := parentOf(path)
	n, parent := t.m.tree.nodes[path], t.m.tree.nodes[parentPath]
	before := parent.meta
	t.m.tree.drop(path)
	parent.meta.Pzxid = t.zxid
	t.m.dirty.node(path, true)
	t.m.dirty.node(parentPath, false)
	t.undo = append(t.undo, func() {
		t.m.tree.put(path, n)
		parent.meta = before
	})
	t.events = append(t.events, change{proto.NodeDeleted, path, n.acl}, change{proto.NodeChildrenChanged, parentPath, parent.acl})
}

// setData replaces a node's data.
func (t *txn) setData(r *proto.SetDataRequest) (proto.Stat, proto.Code) {
	n, code := t.existing(r.Path, proto.PermWrite)
	if code != proto.OK {
		return proto.Stat{}, code
	}
	if r.Version != -1 && r.Version != n.meta.Version {
		return proto.Stat{}, proto.BadVersion
	}
	meta, data := n.meta, n.data
	t.m.tree.setData(n, r.Data)
	n.meta.Version, n.meta.Mzxid, n.meta.Mtime = nextVersion(n.meta.Version), t.zxid, t.wall
	t.m.dirty.node(r.Path, true)
	t.undo = append(t.undo, func() {
		t.m.tree.setData(n, data)
		n.meta = meta
	})
	t.events = append(t.events, change{proto.NodeDataChanged, r.Path, n.acl})
	return n.stat(), proto.OK
}

// setACL replaces a node's ACL; no watch sees it.
func (t *txn) setACL(r *proto.SetACLRequest) (proto.Stat, proto.Code) {
	if !validPath(r.Path) {
		return proto.Stat{}, proto.BadArguments
	}
	acl, code := t.m.effectiveACL(t.c, r.ACL)
	if code != proto.OK {
		return proto.Stat{}, code
	}
	n, code := t.existing(r.Path, proto.PermAdmin)
	if code != proto.OK {
		return proto.Stat{}, code
	}
	if r.Version != -1 && r.Version != n.meta.ACLVersion {
		return proto.Stat{}, proto.BadVersion
	}
	meta, old := n.meta, n.acl
	n.acl, n.meta.ACLVersion = acl, nextVersion(n.meta.ACLVersion)
	t.m.dirty.node(r.Path, false)
	t.undo = append(t.undo, func() { n.acl, n.meta = old, meta })
	return n.stat(), proto.OK
}

// check demands a version.
func (t *txn) check(r *proto.CheckRequest) proto.Code {
	n, code := t.existing(r.Path, proto.PermRead)
	if code == proto.OK && r.Version != -1 && r.Version != n.meta.Version {
		return proto.BadVersion
	}
	return code
}

// existing finds a node that the client may use so.
func (t *txn) existing(path string, perm int32) (*node, proto.Code) {
	if !validPath(path) {
		return nil, proto.BadArguments
	}
	n := t.m.tree.nodes[path]
	if n == nil {
		return nil, proto.NoNode
	}
	if !t.allowed(n, perm) {
		return nil, proto.NoAuth
	}
	return n, proto.OK
}

// nextVersion skips -1, which a client could not tell from "any version" (ZOOKEEPER-4743).
func nextVersion(v int32) int32 {
	if v+1 == -1 {
		return 0
	}
	return v + 1
}

// sweep removes containers that had children and have none, and TTL nodes without children that nobody wrote for that long.
// Each goes under a zxid of its own.
func (m *Machine) sweep(now Now) {
	for _, path := range slices.Sorted(maps.Keys(m.tree.swept)) {
		n := m.tree.nodes[path]
		if n == nil || len(n.children) > 0 {
			continue
		}
		ttl := int64(uint64(n.meta.Owner) &^ ttlMask)
		if n.isContainer() && n.meta.Creates > 0 || n.isTTL() && ttl != 0 && now.Wall-n.meta.Mtime > ttl {
			t := m.begin(now, nil)
			t.remove(path)
			t.commit()
		}
	}
}
