package vfs

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// change is an operation together with what it acts on. Nodes are numbers that never change their meaning, so that a
// history can be replayed with some of its operations left out: names would then lead elsewhere.
type change struct {
	Op
	dir    int // directory and name in it of create, mkdir, remove and the source of rename
	base   string
	node   int // what is created, written, synced, moved..
	toDir  int // target of rename
	toBase string
	data   []byte // of write; never modified
}

// tree is the state of a disk: nodes by number. Node numbers are given out in the order of creation.
type tree struct {
	nodes map[int]*node
	next  int
}

const rootNode = 0

type node struct {
	dir     bool
	entries map[string]int
	data    []byte
	shared  bool // data belongs to another tree as well: copy before writing
}

func (n *node) names() []string { return slices.Sorted(maps.Keys(n.entries)) }

func newTree() *tree {
	return &tree{nodes: map[int]*node{rootNode: {dir: true, entries: map[string]int{}}}, next: rootNode + 1}
}

// clone is a tree that can be changed without changing t, provided that t itself is not changed any more.
func (t *tree) clone() *tree {
	c := &tree{nodes: make(map[int]*node, len(t.nodes)), next: t.next}
	for id, n := range t.nodes {
		c.nodes[id] = &node{dir: n.dir, entries: maps.Clone(n.entries), data: n.data, shared: true}
	}
	return c
}

func split(name string) []string {
	if name == "/" {
		return nil
	}
	return strings.Split(name[1:], "/")
}

func (t *tree) find(name string) (int, error) {
	at := rootNode
	for _, part := range split(name) {
		if !t.nodes[at].dir {
			return 0, errNotDir
		}
		id, ok := t.lookup(at, part)
		if !ok {
			return 0, fs.ErrNotExist
		}
		at = id
	}
	return at, nil
}

// parent finds the directory that name lies in.
func (t *tree) parent(name string) (dir int, base string, err error) {
	if name == "/" {
		return 0, "", errInvalid
	}
	if dir, err = t.find(path.Dir(name)); err == nil && !t.nodes[dir].dir {
		err = errNotDir
	}
	return dir, path.Base(name), err
}

func (t *tree) lookup(dir int, base string) (int, bool) {
	id, ok := t.nodes[dir].entries[base]
	return id, ok
}

// mayReplace tells whether node id may be renamed to that name.
func (t *tree) mayReplace(id, toDir int, toBase string) error {
	old, ok := t.lookup(toDir, toBase)
	switch {
	case !ok && t.nodes[id].dir && t.contains(id, toDir):
		return errInvalid
	case !ok:
		return nil
	case t.nodes[old].dir: // as the os package has it, even where the system would allow it
		return fs.ErrExist
	case t.nodes[id].dir:
		return errNotDir
	}
	return nil
}

func (t *tree) contains(dir, id int) bool {
	if dir == id {
		return true
	}
	for _, child := range t.nodes[dir].entries {
		if t.contains(child, id) {
			return true
		}
	}
	return false
}

// apply changes the tree. It takes no offence at operations on what is not there: a replay may have left out what made
// it.
func (t *tree) apply(o *change) {
	switch o.Kind {
	case OpCreate, OpMkdir:
		n := &node{dir: o.Kind == OpMkdir}
		if n.dir {
			n.entries = map[string]int{}
		}
		t.nodes[o.node] = n
		t.next = max(t.next, o.node+1)
		t.link(o.dir, o.base, o.node)
	case OpRemove:
		t.unlink(o.dir, o.base, o.node)
	case OpRename:
		t.unlink(o.dir, o.base, o.node)
		t.link(o.toDir, o.toBase, o.node)
	case OpWrite:
		if n := t.nodes[o.node]; n != nil {
			n.write(o.data, o.Offset)
		}
	case OpTruncate:
		if n := t.nodes[o.node]; n != nil {
			n.resize(o.Offset)
		}
	}
}

func (t *tree) link(dir int, base string, id int) {
	if d := t.nodes[dir]; d != nil && t.nodes[id] != nil {
		d.entries[base] = id
	}
}

func (t *tree) unlink(dir int, base string, id int) {
	if d := t.nodes[dir]; d != nil && d.entries[base] == id {
		delete(d.entries, base)
	}
}

// drop forgets the nodes that no name leads to.
func (t *tree) drop() {
	live := map[int]bool{}
	var walk func(int)
	walk = func(id int) {
		live[id] = true
		for _, child := range t.nodes[id].entries {
			walk(child)
		}
	}
	walk(rootNode)
	maps.DeleteFunc(t.nodes, func(id int, _ *node) bool { return !live[id] })
}

func (n *node) own() {
	if n.shared {
		n.data = slices.Clone(n.data)
		n.shared = false
	}
}

func (n *node) write(p []byte, off int64) {
	n.own()
	if end := off + int64(len(p)); end > int64(len(n.data)) {
		n.grow(end)
	}
	copy(n.data[off:], p)
}

func (n *node) resize(size int64) {
	n.own()
	if size > int64(len(n.data)) {
		n.grow(size)
	}
	n.data = n.data[:size]
}

func (n *node) grow(size int64) {
	old := len(n.data)
	n.data = slices.Grow(n.data, int(size)-old)[:size]
	clear(n.data[old:])
}

func (t *tree) info(name string, id int) fs.FileInfo {
	n := t.nodes[id]
	return fileInfo{name: name, size: int64(len(n.data)), dir: n.dir}
}

type fileInfo struct {
	name string
	size int64
	dir  bool
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) ModTime() time.Time { return epoch }
func (i fileInfo) IsDir() bool        { return i.dir }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
