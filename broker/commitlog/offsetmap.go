package commitlog

import (
	"hash/maphash"
	"math/bits"

	"barnabas/broker/record"
)

// offsetMapEntry is the memory of one key in an offsetMap: 24 bytes, as Kafka counts log.cleaner.dedupe.buffer.size.
const offsetMapEntry = 24

// offsetMap remembers the last offset of each key in bounded memory: not the key but 128 bits of a hash of it. Two keys with
// the same hash would cost one of them its record; with ten million keys that has a chance of 1 in 10^24. The hash is keyed by
// seeds that nobody outside knows, so that nobody can send two such keys.
//
// Open addressing with linear probing.
type offsetMap struct {
	slots []offsetSlot
	used  int
	limit int // keys that may be put
	seeds [2]maphash.Seed
	// latest is the offset up to which the log is in the map.
	latest int64
}

type offsetSlot struct {
	keyHash
	next int64 // the offset plus one; 0: free
}

// newOffsetMap makes a map of at most bytes, and no larger than it has to be for the given number of records. It holds
// load of its slots, and one key at the least.
func newOffsetMap(bytes int64, load float64, records int64) *offsetMap {
	load = min(max(load, 0.01), 1)
	slots := max(bytes/offsetMapEntry, 2)
	if need := float64(records)/load + 2; need < float64(slots) {
		slots = int64(need)
	}
	limit := max(int(float64(slots)*load), 1)
	return &offsetMap{
		slots: make([]offsetSlot, slots), limit: min(limit, int(slots)-1), latest: noOffset,
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
	}
}

// keyHash is what stands for a key.
type keyHash struct{ a, b uint64 }

func (m *offsetMap) hash(key []byte) keyHash {
	return keyHash{maphash.Bytes(m.seeds[0], key), maphash.Bytes(m.seeds[1], key)}
}

// hashRun appends the hashes of some records' keys to dst and has their slots brought to the processor: each look-up in a
// map of this size would wait for memory, but reads that do not depend on one another are waited for together.
func (m *offsetMap) hashRun(dst []keyHash, run []record.Keyed) []keyHash {
	for i := range run {
		dst = append(dst, m.hash(run[i].Key))
	}
	m.touch(dst)
	return dst
}

// touch reads the slots at which the search for some keys begins. It returns something, and is not inlined, so that the
// reads are not left out.
//
//go:noinline
func (m *offsetMap) touch(hashes []keyHash) (sum int64) {
	for _, h := range hashes {
		sum += m.slots[m.first(h)].next
	}
	return sum
}

// first is the index of the slot at which the search for a key begins.
func (m *offsetMap) first(h keyHash) uint64 {
	i, _ := bits.Mul64(h.a, uint64(len(m.slots)))
	return i
}

// slot returns the place of a key, or the free one where it would go. At least one slot is always free.
func (m *offsetMap) slot(h keyHash) *offsetSlot {
	i := m.first(h)
	for {
		s := &m.slots[i]
		if s.next == 0 || s.keyHash == h {
			return s
		}
		if i++; i == uint64(len(m.slots)) {
			i = 0
		}
	}
}

// put notes that a key stands at offset; false when the map is full.
func (m *offsetMap) put(h keyHash, offset int64) bool {
	if m.used >= m.limit {
		return false
	}
	s := m.slot(h)
	if s.next == 0 {
		m.used++
	}
	*s = offsetSlot{h, offset + 1}
	m.latest = offset
	return true
}

// get returns the last offset of a key, noOffset when it is not in the map.
func (m *offsetMap) get(h keyHash) int64 { return m.slot(h).next - 1 }
