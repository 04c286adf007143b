package zkstate

import "strings"

// Do runs operations at the same time, so it must keep apart those whose order matters: two that touch the same
// node, or a node and one above it (create a parent, then its child; delete a child, then its parent), unless both
// only read. order says for each operation which earlier ones it waits for. Every entry is smaller than its index,
// so whoever takes operations by index can never wait in a circle.

// touched is what has been done so far at one node and below it.
type touched struct {
	write   int   // last write at this node, -1
	reads   []int // reads at this node since that write
	below   []int // operations below this node since the last write at it
	belowRW bool  // whether below holds a write
}

func order(ops []Op) [][]int {
	nodes := make(map[string]*touched, len(ops))
	at := func(path string) *touched {
		n := nodes[path]
		if n == nil {
			n = &touched{write: -1}
			nodes[path] = n
		}
		return n
	}
	waits := make([][]int, len(ops))
	for i, op := range ops {
		path, writes := op.Path, op.Kind.Writes()
		if sequential(op.Kind) {
			// The server makes the name, so the node is none that another operation could name; its parent counts.
			path = parent(path)
			writes = false
		}
		here := at(path)
		if here.write >= 0 {
			waits[i] = append(waits[i], here.write)
		}
		if writes {
			waits[i] = append(append(waits[i], here.reads...), here.below...)
			here.reads, here.below, here.belowRW = nil, nil, false
			here.write = i
		} else {
			if here.belowRW {
				waits[i] = append(waits[i], here.below...)
			}
			here.reads = append(here.reads, i)
		}
		for up := path; up != "/" && up != ""; {
			up = parent(up)
			n := at(up)
			if n.write >= 0 {
				waits[i] = append(waits[i], n.write)
			}
			if writes {
				// A read above (the list of children) must see or not see this write as its place in the order says.
				waits[i] = append(waits[i], n.reads...)
				n.belowRW = true
			}
			n.below = append(n.below, i)
		}
	}
	return waits
}

func sequential(k OpKind) bool { return k == OpCreateSequential || k == OpCreateEphemeralSequential }

func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/"
	}
	return path[:i]
}
