// Package znode tells what the nodes of a Kafka cluster in ZooKeeper say: which family a path belongs to, and what its data means by zkstate's decoders. It is pure: whoever reads the nodes hands
// them in.
//
// What is secret is not told: of SCRAM credentials only the iterations, of encrypted passwords nothing.
package znode

import (
	"slices"
	"strings"

	"barnabas/zkstate"
)

// Reading is what a node says.
type Reading struct {
	Family  string // such as "broker"; "" for a path that Kafka does not use
	Content any    // plain data with JSON names; nil when there is none, or none that could be read
	Problem error  // the data is not what its family has
}

// family is a kind of node.
type family struct {
	path string // each * stands for one name
	name string
	read func(node) (any, error) // nil: it has no data of interest
}

// node is a node of a family.
type node struct {
	names []string // what the stars stood for
	data  []byte
	stat  zkstate.Stat
}

// Read tells what a node says.
func Read(path string, data []byte, stat zkstate.Stat) Reading {
	f, names := find(path)
	if f == nil {
		return Reading{}
	}
	r := Reading{Family: f.name}
	if f.read != nil && (len(data) > 0 || f.name == seqFamily || f.name == deleteFamily) {
		if r.Content, r.Problem = f.read(node{names, data, stat}); r.Problem != nil {
			r.Content = nil
		}
	}
	return r
}

// Family is the family of a path, "" for one that Kafka does not use.
func Family(path string) string {
	if f, _ := find(path); f != nil {
		return f.name
	}
	return ""
}

func find(path string) (*family, []string) {
	parts := strings.Split(path, "/")
	at := slices.IndexFunc(families, func(f family) bool { return matches(strings.Split(f.path, "/"), parts) })
	if at < 0 {
		return nil, nil
	}
	var names []string
	for i, part := range strings.Split(families[at].path, "/") {
		if part == "*" {
			names = append(names, parts[i])
		}
	}
	return &families[at], names
}

func matches(pattern, parts []string) bool {
	if len(pattern) != len(parts) {
		return false
	}
	for i := range pattern {
		if pattern[i] != parts[i] && (pattern[i] != "*" || parts[i] == "") {
			return false
		}
	}
	return true
}
