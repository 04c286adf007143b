package vfs

import (
	"math/rand/v2"
)

// Adversary says what a power cut does to changes that were not made durable.
//
// What was made durable survives all of them: bytes, sizes by Sync of the file; names by SyncDir of their directory (a
// rename across directories by SyncDir of both). Sync of a new file does not keep its name.
type Adversary int

const (
	// Synced: nothing else survives.
	Synced Adversary = iota
	// Everything survives: the process dies, not the machine.
	Everything
	// Prefix: of the changes not durable, those before some moment survive.
	Prefix
	// Torn: as Prefix, and of the write at that moment some sectors of 512 bytes.
	Torn
	// Pages: each page of 4 KiB is as it was at a moment of its own, the size of a file too, and in each directory the
	// changes of names before some moment survive.
	Pages
	// ZeroFilled: names and sizes survive, the bytes do not: files end in zeros.
	ZeroFilled
	// NamesOnly: names survive, bytes and sizes do not: a new file was renamed over the old one, and is empty.
	NamesOnly
	// Mixed: each file meets its own fate among the above.
	Mixed
)

// Adversaries lists them all.
var Adversaries = []Adversary{Synced, Everything, Prefix, Torn, Pages, ZeroFilled, NamesOnly, Mixed}

var adversaryNames = [...]string{"synced", "everything", "prefix", "torn", "pages", "zero-filled", "names-only", "mixed"}

func (a Adversary) String() string { return adversaryNames[a] }

const (
	sectorSize = 512
	pageSize   = 4096
)

// Image is the disk after a power cut behind the first cut operations, mounted anew. The same arguments give the same
// disk. The history of c is not changed, so that thousands of images can be built of one.
func (c *CrashFS) Image(cut int, a Adversary, seed uint64) *CrashFS {
	c.mu.Lock()
	ops, disk := c.ops[:cut:cut], c.base.clone()
	c.mu.Unlock()
	im := &image{ops: ops, fate: fates(ops), adversary: a, disk: disk, rng: rand.New(rand.NewPCG(seed, uint64(cut)<<8|uint64(a)))}
	im.moment = im.pickMoment()
	im.names()
	im.contents()
	disk.drop()
	return mount(disk)
}

// fate of a change at the moment of the cut.
type fate int8

const (
	pending fate = iota // may or may not be on the disk
	durable
	lost // a sync failed: never on the disk
)

// fates walks a history and says of each change whether a later sync made it durable.
func fates(ops []change) []fate {
	out := make([]fate, len(ops))
	bytesOf := map[int][]int{} // node -> its pending writes and truncations
	namesIn := map[int][]int{} // directory -> its pending changes of names
	halves := map[int]int{}    // rename across directories -> of how many directories it still waits for the sync
	for i := range ops {
		switch o := &ops[i]; o.Kind {
		case OpWrite, OpTruncate:
			bytesOf[o.node] = append(bytesOf[o.node], i)
		case OpSync:
			to := durable
			if o.Failed {
				to = lost
			}
			for _, k := range bytesOf[o.node] {
				out[k] = to
			}
			delete(bytesOf, o.node)
		case OpCreate, OpMkdir, OpRemove:
			namesIn[o.dir] = append(namesIn[o.dir], i)
			halves[i] = 1
		case OpRename:
			namesIn[o.dir] = append(namesIn[o.dir], i)
			halves[i] = 1
			if o.toDir != o.dir {
				namesIn[o.toDir] = append(namesIn[o.toDir], i)
				halves[i] = 2
			}
		case OpSyncDir:
			for _, k := range namesIn[o.node] {
				if halves[k]--; halves[k] == 0 {
					out[k] = durable
				}
			}
			delete(namesIn, o.node)
		}
	}
	return out
}

type image struct {
	ops       []change
	fate      []fate
	adversary Adversary
	disk      *tree
	rng       *rand.Rand
	moment    int // of Prefix and Torn: pending changes before this index survive
}

func (im *image) pickMoment() int {
	var at []int
	for i, f := range im.fate {
		if f == pending && im.ops[i].changes() {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return len(im.ops)
	}
	if k := im.rng.IntN(len(at) + 1); k < len(at) {
		return at[k]
	}
	return len(im.ops)
}

func (o *change) changes() bool { return o.Kind != OpSync && o.Kind != OpSyncDir }

// names replays the changes of names that survive.
//
// In one directory they survive in order, as a journal keeps them: once one is lost, so are those behind it, and a
// rename that is lost takes both of its directories along. A directory that was synced later has no pending changes
// before that sync, so nothing durable is ever behind something lost in the same directory.
func (im *image) names() {
	dead := map[int]bool{}
	for i := range im.ops {
		o := &im.ops[i]
		switch o.Kind {
		case OpCreate, OpMkdir, OpRemove, OpRename:
		default:
			continue
		}
		if im.fate[i] != durable {
			dirs := []int{o.dir}
			if o.Kind == OpRename {
				dirs = append(dirs, o.toDir)
			}
			keep := im.keepName(i)
			for _, d := range dirs {
				keep = keep && !dead[d]
			}
			if !keep {
				for _, d := range dirs {
					dead[d] = true
				}
				continue
			}
		}
		im.disk.apply(o)
	}
}

func (im *image) keepName(i int) bool {
	switch im.adversary {
	case Everything, ZeroFilled, NamesOnly:
		return true
	case Prefix, Torn:
		return i < im.moment
	case Pages, Mixed:
		return im.rng.IntN(4) > 0
	}
	return false
}

// contents replays the changes of bytes and sizes that survive, file by file in the order of node numbers.
func (im *image) contents() {
	byNode := map[int][]int{}
	for i := range im.ops {
		if k := im.ops[i].Kind; (k == OpWrite || k == OpTruncate) && im.fate[i] != lost && im.disk.nodes[im.ops[i].node] != nil {
			byNode[im.ops[i].node] = append(byNode[im.ops[i].node], i)
		}
	}
	for id := range im.disk.next {
		if len(byNode[id]) > 0 {
			im.file(im.disk.nodes[id], byNode[id])
		}
	}
}

func (im *image) file(n *node, ops []int) {
	for len(ops) > 0 && im.fate[ops[0]] == durable {
		im.replay(n, ops[0])
		ops = ops[1:]
	}
	if len(ops) == 0 {
		return
	}
	a := im.adversary
	if a == Mixed {
		a = Adversaries[im.rng.IntN(int(Mixed))]
	}
	switch a {
	case Everything:
		for _, i := range ops {
			im.replay(n, i)
		}
	case Prefix, Torn:
		for _, i := range ops {
			if i < im.moment {
				im.replay(n, i)
			} else if i == im.moment && a == Torn {
				im.tear(n, &im.ops[i])
			}
		}
	case Pages:
		im.pages(n, ops)
	case ZeroFilled:
		size := int64(len(n.data))
		for _, i := range ops {
			size = sizeAfter(size, &im.ops[i])
		}
		n.resize(size)
	}
}

func (im *image) replay(n *node, i int) {
	if o := &im.ops[i]; o.Kind == OpWrite {
		n.write(o.data, o.Offset)
	} else {
		n.resize(o.Offset)
	}
}

func sizeAfter(size int64, o *change) int64 {
	if o.Kind == OpTruncate {
		return o.Offset
	}
	return max(size, o.Offset+int64(len(o.data)))
}

// tear writes some of the sectors of a write.
func (im *image) tear(n *node, o *change) {
	if o.Kind != OpWrite {
		return
	}
	for at := 0; at < len(o.data); {
		next := min(len(o.data), at+sectorSize-int((o.Offset+int64(at))%sectorSize))
		if im.rng.IntN(2) == 0 {
			n.write(o.data[at:next], o.Offset+int64(at))
		}
		at = next
	}
}

// pages gives each page the bytes it had after some number of the pending changes, and the file the size it had after
// some other number of them.
func (im *image) pages(n *node, ops []int) {
	size := int64(len(n.data))
	at, extent := im.rng.IntN(len(ops)+1), size
	final := size
	for k, i := range ops {
		size = sizeAfter(size, &im.ops[i])
		extent = max(extent, size)
		if k < at {
			final = size
		}
	}
	count := int(extent+pageSize-1) / pageSize
	version := make([]int, count)
	for p := range version {
		version[p] = im.rng.IntN(len(ops) + 1)
	}
	work := node{data: append([]byte(nil), n.data...)}
	out := make([]byte, extent)
	keep := func(k int) {
		for p, v := range version {
			if from := p * pageSize; v == k && from < len(work.data) {
				copy(out[from:min(from+pageSize, len(out))], work.data[from:])
			}
		}
	}
	keep(0)
	for k, i := range ops {
		im.replay(&work, i)
		keep(k + 1)
	}
	n.own()
	n.data = out[:final:final]
}
