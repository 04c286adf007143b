package zkstate

import (
	"cmp"
	"slices"
	"unicode/utf16"
)

// Hash tables of Java and Scala have at least 16 buckets and double before they are three quarters full; a key's bucket
// is the low bits of its spread hash, and iteration goes by bucket.
func buckets(keys int) uint32 {
	table := uint32(16)
	for uint32(keys) >= table/4*3 {
		table *= 2
	}
	return table
}

// spread is the hash as tables use it.
func spread(key string) uint32 {
	h := uint32(javaHash(key))
	return h ^ h>>16
}

// javaOrder is how java.util.Properties iterates keys that were put in the order given. Within a bucket that order stays.
func javaOrder(keys []string) []string {
	mask := buckets(len(keys)) - 1
	out := slices.Clone(keys)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(spread(a)&mask, spread(b)&mask) })
	return out
}

// scalaMutableOrder is how Scala 2.13's mutable.HashMap iterates keys: within a bucket by hash, signed.
func scalaMutableOrder(keys []string) []string {
	mask := buckets(len(keys)) - 1
	out := sortedStrings(slices.Clone(keys))
	slices.SortStableFunc(out, func(a, b string) int {
		ha, hb := spread(a), spread(b)
		return cmp.Or(cmp.Compare(ha&mask, hb&mask), cmp.Compare(int32(ha), int32(hb)))
	})
	return out
}

// javaHash is String.hashCode: over UTF-16 units, modulo 2^32.
func javaHash(s string) int32 {
	var h int32
	for _, r := range s {
		if r < 0x10000 {
			h = 31*h + r
			continue
		}
		hi, lo := utf16.EncodeRune(r)
		h = 31*(31*h+hi) + lo
	}
	return h
}

func keysOf[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	return sortedStrings(keys)
}

// scalaOrder is how Scala's immutable Map iterates keys that were put in the order given: up to four as they came,
// more as its trie holds them. A node of the trie has 32 places for five bits of the mixed hash, first the keys that
// are alone in their place, then the nodes below.
func scalaOrder(keys []string) []string {
	if len(keys) <= 4 {
		return keys
	}
	return trieOrder(keys, 0)
}

// mixed is the hash as the trie uses it.
func mixed(key string) uint32 {
	h := uint32(javaHash(key))
	h += ^(h << 9)
	h ^= h >> 14
	h += h << 4
	return h ^ h>>10
}

func trieOrder(keys []string, shift uint) []string {
	if shift >= 32 { // equal hashes
		return keys
	}
	var places [32][]string
	for _, k := range keys {
		place := mixed(k) >> shift & 31
		places[place] = append(places[place], k)
	}
	out := make([]string, 0, len(keys))
	for _, p := range places {
		if len(p) == 1 {
			out = append(out, p[0])
		}
	}
	for _, p := range places {
		if len(p) > 1 {
			out = append(out, trieOrder(p, shift+5)...)
		}
	}
	return out
}

func sortedStrings(keys []string) []string {
	slices.Sort(keys)
	return keys
}
