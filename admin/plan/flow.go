package plan

// A flow of least cost through a network whose edges grow dearer with every unit (successive shortest paths). Costs are compared level by level: what spoils the shape of the assignment
// first, then bytes, then moves.

type cost struct{ shape, bytes, moves int64 }

func (a cost) plus(b cost) cost { return cost{a.shape + b.shape, a.bytes + b.bytes, a.moves + b.moves} }
func (a cost) minus() cost      { return cost{-a.shape, -a.bytes, -a.moves} }
func (a cost) less(b cost) bool {
	if a.shape != b.shape {
		return a.shape < b.shape
	}
	if a.bytes != b.bytes {
		return a.bytes < b.bytes
	}
	return a.moves < b.moves
}

// edge carries up to capacity units from one node to another. The next unit costs base and, for each unit that is on the edge already, step; offset counts units that were there before.
type edge struct {
	from, to       int
	capacity, flow int
	base           cost
	step           int64
	offset         int
}

func (e *edge) next() cost {
	return e.base.plus(cost{shape: e.step * int64(e.offset+e.flow)})
}

// last is what the unit that came last has cost.
func (e *edge) last() cost {
	return e.base.plus(cost{shape: e.step * int64(e.offset+e.flow-1)})
}

type network struct {
	edges []edge
	at    [][]int // edges that touch a node
}

func (n *network) node() int {
	n.at = append(n.at, nil)
	return len(n.at) - 1
}

func (n *network) connect(e edge) int {
	n.edges = append(n.edges, e)
	i := len(n.edges) - 1
	n.at[e.from] = append(n.at[e.from], i)
	n.at[e.to] = append(n.at[e.to], i)
	return i
}

// push sends units one after the other along the cheapest way that is left, as many as get through.
func (n *network) push(source, sink, units int) {
	for range units {
		via := n.cheapest(source, sink)
		if via == nil {
			return
		}
		for at := sink; at != source; {
			e := &n.edges[via[at]]
			if e.to == at {
				e.flow++
				at = e.from
			} else {
				e.flow--
				at = e.to
			}
		}
	}
}

// cheapest finds the cheapest way with room: for each node on it the edge that leads there. Going against an edge takes a unit back. Nodes are visited in the order in which they were reached,
// so that equal costs are always decided in one way.
func (n *network) cheapest(source, sink int) []int {
	reached, queued := make([]bool, len(n.at)), make([]bool, len(n.at))
	costs, via := make([]cost, len(n.at)), make([]int, len(n.at))
	queue := []int{source}
	reached[source] = true
	for len(queue) > 0 {
		at := queue[0]
		queue, queued[at] = queue[1:], false
		for _, i := range n.at[at] {
			e := &n.edges[i]
			to, c := e.to, cost{}
			switch {
			case e.from == at && e.flow < e.capacity:
				c = costs[at].plus(e.next())
			case e.to == at && e.flow > 0:
				to, c = e.from, costs[at].plus(e.last().minus())
			default:
				continue
			}
			if reached[to] && !c.less(costs[to]) {
				continue
			}
			reached[to], costs[to], via[to] = true, c, i
			if !queued[to] {
				queue, queued[to] = append(queue, to), true
			}
		}
	}
	if !reached[sink] {
		return nil
	}
	return via
}
