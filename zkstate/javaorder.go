package zkstate

import (
	"slices"
	"unicode/utf16"
)

// javaOrder sorts keys as java.util.Properties and Scala 2.13's mutable.HashMap iterate them: by bucket of a table
// of at least 16 that doubles before it is three quarters full, the bucket being the low bits of the spread hash;
// within a bucket by hash, then (for distinct keys with one hash, where the order of insertion decides) by the key.
func javaOrder(keys []string) []string {
	table := uint32(16)
	for uint32(len(keys)) >= table/4*3 {
		table *= 2
	}
	type hashed struct {
		key    string
		bucket uint32
		hash   int32
	}
	hs := make([]hashed, len(keys))
	for i, k := range keys {
		h := uint32(javaHash(k))
		h ^= h >> 16
		hs[i] = hashed{k, h & (table - 1), int32(h)}
	}
	slices.SortFunc(hs, func(a, b hashed) int {
		switch {
		case a.bucket != b.bucket:
			return int(a.bucket) - int(b.bucket)
		case a.hash < b.hash:
			return -1
		case a.hash > b.hash:
			return 1
		case a.key < b.key:
			return -1
		}
		return 1
	})
	out := make([]string, len(keys))
	for i, h := range hs {
		out[i] = h.key
	}
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

func sortedByJava[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	return javaOrder(keys)
}

// scalaOrder is how Scala's immutable Map iterates keys that were put in the order given: up to four as they came,
// more as its trie holds them. A node of the trie has 32 places for five bits of the spread hash, first the keys that
// are alone in their place, then the nodes below.
func scalaOrder(keys []string) []string {
	if len(keys) <= 4 {
		return keys
	}
	return trieOrder(keys, 0)
}

func trieOrder(keys []string, shift uint) []string {
	if shift >= 32 { // equal hashes
		return keys
	}
	var places [32][]string
	for _, k := range keys {
		h := uint32(javaHash(k))
		h ^= h >> 16
		place := h >> shift & 31
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
