package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"barnabas/zkstate/embedded/proto"
)

// The nodes that every server has from the first moment.
const (
	rootPath   = "/"
	systemPath = "/zookeeper"
	quotaPath  = "/zookeeper/quota"
	configPath = "/zookeeper/config"
)

// containerOwner marks a container node in the owner field; ttlMask marks a TTL node, whose lower bits are the milliseconds.
const (
	containerOwner int64  = -1 << 63
	ttlMask        uint64 = 0xff00_0000_0000_0000
	ttlMax         int64  = 0x00ff_ffff_ffff
)

// Meta is a node's stored metadata. Creates counts the children ever created: it numbers sequential nodes, and the protocol's
// cversion is derived from it, 2*creates - children, which counts creations and removals.
type Meta struct {
	Czxid, Mzxid, Pzxid          int64
	Ctime, Mtime                 int64
	Version, Creates, ACLVersion int32
	Owner                        int64
}

type node struct {
	meta     Meta
	acl      []proto.ACL // empty: everything is allowed to everybody
	data     []byte      // nil: the client sent null
	children map[string]struct{}
}

// stat is what clients see; that a node is a container or has a time to live they do not.
func (n *node) stat() proto.Stat {
	owner := n.meta.Owner
	if !n.isEphemeral() {
		owner = 0
	}
	return proto.Stat{
		Czxid: n.meta.Czxid, Mzxid: n.meta.Mzxid, Pzxid: n.meta.Pzxid, Ctime: n.meta.Ctime, Mtime: n.meta.Mtime,
		Version: n.meta.Version, Cversion: n.meta.Creates*2 - int32(len(n.children)), Aversion: n.meta.ACLVersion,
		EphemeralOwner: owner, DataLength: int32(len(n.data)), NumChildren: int32(len(n.children)),
	}
}

func (n *node) isContainer() bool { return n.meta.Owner == containerOwner }
func (n *node) isTTL() bool       { return isTTLOwner(n.meta.Owner) }

// isEphemeral tells whether a session owns the node.
func (n *node) isEphemeral() bool { return isSessionOwner(n.meta.Owner) }

func isTTLOwner(owner int64) bool { return uint64(owner)&ttlMask == ttlMask }
func isSessionOwner(owner int64) bool {
	return owner != 0 && owner != containerOwner && !isTTLOwner(owner)
}

// tree holds every node by its path, and the indexes over them.
type tree struct {
	nodes      map[string]*node
	ephemerals map[int64]map[string]struct{}
	swept      map[string]struct{} // container and TTL nodes
	dataBytes  int64               // paths and data together
}

var (
	openACL     = []proto.ACL{{Perms: proto.PermAll, Scheme: "world", ID: "anyone"}}
	readOnlyACL = []proto.ACL{{Perms: proto.PermRead, Scheme: "world", ID: "anyone"}}
)

func emptyTree() *tree {
	return &tree{nodes: map[string]*node{}, ephemerals: map[int64]map[string]struct{}{}, swept: map[string]struct{}{}}
}

// newTree has what a fresh ZooKeeper has. Its own nodes were never created by a transaction, so all their counters are zero.
func newTree() *tree {
	t := emptyTree()
	t.put(rootPath, &node{data: []byte{}, acl: openACL})
	t.put(systemPath, &node{data: []byte{}, acl: openACL})
	t.put(quotaPath, &node{data: []byte{}, acl: openACL})
	t.put(configPath, &node{data: []byte{}, acl: readOnlyACL, meta: Meta{ACLVersion: -1}})
	return t
}

// loadTree rebuilds a tree from records in any order.
func loadTree(records []NodeRecord) (*tree, error) {
	t := emptyTree()
	sorted := slices.Clone(records)
	// A parent's path is a prefix of its children's, so it sorts first.
	slices.SortFunc(sorted, func(a, b NodeRecord) int { return strings.Compare(a.Path, b.Path) })
	for _, r := range sorted {
		if r.Path != rootPath && t.nodes[parentOf(r.Path)] == nil {
			return nil, fmt.Errorf("node %q has no parent in the store", r.Path)
		}
		t.put(r.Path, &node{meta: r.Meta, acl: r.ACL, data: r.Data})
	}
	for _, path := range []string{rootPath, systemPath, quotaPath, configPath} {
		if t.nodes[path] == nil {
			return nil, fmt.Errorf("node %q is missing in the store", path)
		}
	}
	return t, nil
}

// parentOf gives the path of the node above; the root is its own parent.
func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return rootPath
}

func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// find looks a node up for reading, where the empty path is another name of the root.
func (t *tree) find(path string) *node {
	if path == "" {
		path = rootPath
	}
	return t.nodes[path]
}

// put adds a node below its parent, which must be there.
func (t *tree) put(path string, n *node) {
	t.nodes[path] = n
	t.dataBytes += int64(len(path) + len(n.data))
	if path == rootPath {
		return
	}
	p := t.nodes[parentOf(path)]
	if p.children == nil {
		p.children = map[string]struct{}{}
	}
	p.children[nameOf(path)] = struct{}{}
	switch {
	case n.isContainer() || n.isTTL():
		t.swept[path] = struct{}{}
	case n.isEphemeral():
		set := t.ephemerals[n.meta.Owner]
		if set == nil {
			set = map[string]struct{}{}
			t.ephemerals[n.meta.Owner] = set
		}
		set[path] = struct{}{}
	}
}

// drop removes a node that is there and has no children.
func (t *tree) drop(path string) {
	n := t.nodes[path]
	delete(t.nodes, path)
	delete(t.swept, path)
	delete(t.nodes[parentOf(path)].children, nameOf(path))
	t.dataBytes -= int64(len(path) + len(n.data))
	if set := t.ephemerals[n.meta.Owner]; set != nil {
		delete(set, path)
		if len(set) == 0 {
			delete(t.ephemerals, n.meta.Owner)
		}
	}
}

func (t *tree) setData(n *node, data []byte) {
	t.dataBytes += int64(len(data) - len(n.data))
	n.data = data
}

func (n *node) childNames() []string { return slices.Sorted(maps.Keys(n.children)) }
