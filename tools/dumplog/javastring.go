package dumplog

import (
	"strings"
	"unicode/utf8"
)

// javaString is the text that Java's UTF-8 decoder makes of bytes: each maximal part of a broken sequence becomes one
// replacement character, where Go makes one of each byte.
func javaString(p []byte) string {
	if utf8.Valid(p) {
		return string(p)
	}
	var s strings.Builder
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		if r == utf8.RuneError && n <= 1 {
			n = brokenLength(p)
		}
		s.WriteRune(r)
		p = p[n:]
	}
	return s.String()
}

// brokenLength is the length of the longest start of p that could begin a character, at least 1. The three bytes of a
// lone surrogate count as one broken character.
func brokenLength(p []byte) int {
	var need int
	low, high := byte(0x80), byte(0xbf) // of the second byte
	switch c := p[0]; {
	case c >= 0xc2 && c <= 0xdf:
		need = 2
	case c >= 0xe0 && c <= 0xef:
		need = 3
		if c == 0xe0 {
			low = 0xa0
		}
	case c >= 0xf0 && c <= 0xf4:
		need = 4
		if c == 0xf0 {
			low = 0x90
		} else if c == 0xf4 {
			high = 0x8f
		}
	default:
		return 1
	}
	n := 1
	for n < need && n < len(p) && p[n] >= low && p[n] <= high {
		low, high = 0x80, 0xbf
		n++
	}
	return n
}
