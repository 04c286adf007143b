package core

import (
	"maps"
	"slices"
	"strings"

	"barnabas/zkstate/embedded/proto"
)

type body = func([]byte) []byte

// read answers the requests that change nothing but watches.
func (m *Machine) read(c *conn, h proto.Header, req proto.Request) {
	var (
		b    body
		code proto.Code
	)
	switch r := req.(type) {
	case *proto.ReadRequest:
		b, code = m.readNode(c, h.Op, r)
	case *proto.PathRequest:
		b, code = m.readPath(c, h.Op, r.Path)
	case *proto.MultiRequest:
		b = m.multiRead(c, r)
	case *proto.SetWatchesRequest:
		m.setWatches(c, r)
	case *proto.WatchRequest:
		b, code = m.watchRequest(c, h.Op, r)
	case *proto.EmptyRequest:
		b = c.whoAmI
	default:
		code = proto.MarshallingError
	}
	m.reply(c, h.Xid, code, b)
}

// readable finds a node that the client may see.
func (m *Machine) readable(c *conn, path string, perm int32) (*node, proto.Code) {
	n := m.tree.find(path)
	if n == nil {
		return nil, proto.NoNode
	}
	if !m.permits(c, n.acl, perm) {
		return nil, proto.NoAuth
	}
	return n, proto.OK
}

func (m *Machine) readNode(c *conn, op proto.Op, r *proto.ReadRequest) (body, proto.Code) {
	if op == proto.OpExists && strings.ContainsRune(r.Path, 0) {
		return nil, proto.BadArguments
	}
	n, code := m.readable(c, r.Path, proto.PermRead)
	if op == proto.OpExists && r.Watch && code != proto.NoAuth {
		m.data.add(r.Path, c.id, watchOnce) // also on a node that is not there yet
	}
	if code != proto.OK {
		return nil, code
	}
	switch op {
	case proto.OpGetData:
		if r.Watch {
			m.data.add(r.Path, c.id, watchOnce)
		}
		return func(b []byte) []byte { return proto.AppendStat(proto.AppendBuffer(b, n.data), n.stat()) }, proto.OK
	case proto.OpGetChildren, proto.OpGetChildren2:
		if r.Watch {
			m.child.add(r.Path, c.id, watchOnce)
		}
		return func(b []byte) []byte {
			b = proto.AppendStrings(b, n.childNames())
			if op == proto.OpGetChildren2 {
				b = proto.AppendStat(b, n.stat())
			}
			return b
		}, proto.OK
	}
	return func(b []byte) []byte { return proto.AppendStat(b, n.stat()) }, proto.OK
}

func (m *Machine) readPath(c *conn, op proto.Op, path string) (body, proto.Code) {
	switch op {
	case proto.OpSync:
		return func(b []byte) []byte { return proto.AppendString(b, path) }, proto.OK
	case proto.OpGetEphemerals:
		return func(b []byte) []byte { return proto.AppendStrings(b, m.ephemeralsOf(c, path)) }, proto.OK
	case proto.OpGetAllChildrenNum:
		if _, code := m.readable(c, path, proto.PermRead); code != proto.OK {
			return nil, code
		}
		return func(b []byte) []byte { return proto.AppendInt32(b, m.descendants(path)) }, proto.OK
	case proto.OpGetACL:
		return m.getACL(c, path)
	}
	return nil, proto.MarshallingError
}

// getACL hides the digests from whoever may read but not administer the node.
func (m *Machine) getACL(c *conn, path string) (body, proto.Code) {
	n, code := m.readable(c, path, proto.PermRead|proto.PermAdmin)
	if code != proto.OK {
		return nil, code
	}
	acl := n.acl
	if !m.permits(c, n.acl, proto.PermAdmin) {
		acl = slices.Clone(acl)
		for i, a := range acl {
			if user, _, ok := strings.Cut(a.ID, ":"); ok && a.Scheme == "digest" {
				acl[i].ID = user + ":x"
			}
		}
	}
	return func(b []byte) []byte { return proto.AppendStat(proto.AppendACLs(b, acl), n.stat()) }, proto.OK
}

func (m *Machine) ephemeralsOf(c *conn, prefix string) []string {
	paths := slices.Sorted(maps.Keys(m.tree.ephemerals[c.session.id]))
	if p := strings.TrimSpace(prefix); p == "" || p == "/" {
		return paths
	}
	return slices.DeleteFunc(paths, func(p string) bool { return !strings.HasPrefix(p, prefix) })
}

func (m *Machine) descendants(path string) int32 {
	if path == rootPath {
		return int32(len(m.tree.nodes) - 1)
	}
	var total int32
	var walk func(path string, n *node)
	walk = func(path string, n *node) {
		total += int32(len(n.children))
		//purecore:anyorder a sum
		for name := range n.children {
			below := path + "/" + name
			walk(below, m.tree.nodes[below])
		}
	}
	walk(path, m.tree.nodes[path])
	return total
}

// multiRead answers each read by itself: a failed one spoils none of the others.
func (m *Machine) multiRead(c *conn, r *proto.MultiRequest) body {
	return func(b []byte) []byte {
		for _, op := range r.Ops {
			read, ok := op.Body.(*proto.ReadRequest)
			if !ok {
				b = appendErrorResult(b, proto.MarshallingError)
				continue
			}
			result, code := m.readNode(c, op.Op, read)
			if code != proto.OK {
				b = appendErrorResult(b, code)
				continue
			}
			b = result(proto.AppendMultiHeader(b, op.Op, false, 0))
		}
		return proto.AppendMultiHeader(b, proto.OpError, true, -1)
	}
}
