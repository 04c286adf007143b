package core

import (
	"fmt"
	"maps"
	"slices"
)

// Verify checks the invariants of the tree and of what is kept about it; the first one broken is the error. It looks at every
// node, so it is for the start and for tests.
func (m *Machine) Verify() error {
	t := m.tree
	children, ephemerals, swept := 0, 0, 0
	for _, path := range slices.Sorted(maps.Keys(t.nodes)) {
		n := t.nodes[path]
		children += len(n.children)
		switch {
		case !validPath(path):
			return fmt.Errorf("node %q: not a path", path)
		case n.meta.Czxid > n.meta.Mzxid || n.meta.Mzxid > m.zxid || n.meta.Pzxid > m.zxid || n.meta.Czxid > n.meta.Pzxid:
			return fmt.Errorf("node %q: zxids %d, %d, %d out of order, last is %d", path, n.meta.Czxid, n.meta.Mzxid, n.meta.Pzxid, m.zxid)
		case n.isEphemeral() && len(n.children) > 0:
			return fmt.Errorf("node %q: ephemeral with children", path)
		case n.isEphemeral() && m.sessions[n.meta.Owner] == nil:
			return fmt.Errorf("node %q: its session 0x%x is gone", path, uint64(n.meta.Owner))
		}
		if path != rootPath {
			p := t.nodes[parentOf(path)]
			if p == nil {
				return fmt.Errorf("node %q: no parent", path)
			}
			if _, ok := p.children[nameOf(path)]; !ok {
				return fmt.Errorf("node %q: its parent does not list it", path)
			}
		}
		if n.isEphemeral() {
			ephemerals++
			if _, ok := t.ephemerals[n.meta.Owner][path]; !ok {
				return fmt.Errorf("node %q: not among the ephemerals of its session", path)
			}
		}
		if n.isContainer() || n.isTTL() {
			swept++
			if _, ok := t.swept[path]; !ok {
				return fmt.Errorf("node %q: not among those to sweep", path)
			}
		}
	}
	//purecore:anyorder a sum
	for _, set := range t.ephemerals {
		ephemerals -= len(set)
	}
	if children != len(t.nodes)-1 || ephemerals != 0 || swept != len(t.swept) {
		return fmt.Errorf("indexes hold what no node bears out: %d children of %d nodes, %d ephemerals astray, %d of %d to sweep",
			children, len(t.nodes), -ephemerals, len(t.swept), swept)
	}
	return nil
}
