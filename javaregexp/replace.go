// Package javaregexp replaces what a regular expression finds as java.util.regex does.
package javaregexp

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Replace puts the replacement in the place of what the expression finds: of all, or of the first. In the replacement $1 and ${name} stand for groups, and a backslash takes its meaning from
// what follows. A number takes as many digits as there are groups for; one for which there is no group stands for itself.
func Replace(found *regexp.Regexp, text, replacement string, all bool) string {
	limit := 1
	if all {
		limit = -1
	}
	pieces := parse(found, replacement)
	var out strings.Builder
	at := 0
	for _, match := range found.FindAllStringSubmatchIndex(text, limit) {
		out.WriteString(text[at:match[0]])
		for _, p := range pieces {
			out.WriteString(p.literal)
			if p.isGroup && p.group >= 0 && match[2*p.group] >= 0 {
				out.WriteString(text[match[2*p.group]:match[2*p.group+1]])
			}
		}
		at = match[1]
	}
	out.WriteString(text[at:])
	return out.String()
}

// CheckReplacement tells whether Java takes a replacement for an expression: each $ begins a group that there is, and the last backslash has something behind it.
func CheckReplacement(found *regexp.Regexp, replacement string) error {
	for _, p := range parse(found, replacement) {
		if p.stray || p.isGroup && p.group < 0 {
			return fmt.Errorf("replacement %q speaks of a group that is not there", replacement)
		}
	}
	return nil
}

// piece is a part of a replacement: text, or a group, -1 for a name that is none. stray is text that Java takes for a mistake.
type piece struct {
	literal        string
	isGroup, stray bool
	group          int
}

func parse(found *regexp.Regexp, text string) (pieces []piece) {
	for text != "" {
		plain := strings.IndexAny(text, `\$`)
		switch {
		case plain < 0:
			return append(pieces, piece{literal: text})
		case plain > 0:
			pieces, text = append(pieces, piece{literal: text[:plain]}), text[plain:]
		case text == `\`:
			return append(pieces, piece{literal: text, stray: true})
		case text[0] == '\\':
			pieces, text = append(pieces, piece{literal: text[1:2]}), text[2:]
		default:
			var p piece
			p, text = reference(found, text[1:])
			pieces = append(pieces, p)
		}
	}
	return pieces
}

// reference reads what stands behind a $.
func reference(found *regexp.Regexp, text string) (p piece, rest string) {
	if braced, ok := strings.CutPrefix(text, "{"); ok {
		if name, rest, ended := strings.Cut(braced, "}"); ended {
			return piece{isGroup: true, group: found.SubexpIndex(name)}, rest
		}
	}
	digits := 0
	for end := 1; end <= len(text); end++ {
		n, err := strconv.ParseUint(text[:end], 10, 16)
		if err != nil || int(n) > found.NumSubexp() {
			break
		}
		digits, p = end, piece{isGroup: true, group: int(n)}
	}
	if digits == 0 {
		return piece{literal: "$", stray: true}, text
	}
	return p, text[digits:]
}
