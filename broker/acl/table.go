package acl

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Table holds the entries of patterns. It never changes; With makes another, which shares what did not change. A nil
// Table is empty.
type Table struct {
	byResource [resources]*index
}

// resources is how many types of resources there are, and the two numbers of the protocol below them that are none.
const resources = int(kmsg.ACLResourceTypeUser) + 1

// index finds the rules that concern a resource by its name: one look-up for the name, one for the wildcard, and one for
// each length that prefixes have, however many patterns there are.
type index struct {
	literal  map[string][]rule
	prefixed map[string][]rule
	lengths  []int // of the prefixes, ascending; without 0, since an empty prefix concerns nothing
}

// rule is an entry that is ready to be compared.
type rule struct {
	Entry
	principal Principal
}

// Entries are those of a pattern, in the order in which they were given.
func (t *Table) Entries(p Pattern) []Entry {
	rules := t.index(p.Resource).of(p.Type)[p.Name]
	entries := make([]Entry, len(rules))
	for i := range rules {
		entries[i] = rules[i].Entry
	}
	return entries
}

// With is the table in which patterns have the entries given, and no others; a pattern without entries is gone. The
// principals of the entries must be of the form Type:Name.
func (t *Table) With(changes map[Pattern][]Entry) (*Table, error) {
	next := &Table{}
	if t != nil {
		next.byResource = t.byResource
	}
	copied := map[kmsg.ACLResourceType]bool{}
	for p, entries := range changes {
		if p.Resource <= kmsg.ACLResourceTypeAny || int(p.Resource) >= resources {
			continue
		}
		rules, err := rulesOf(entries)
		if err != nil {
			return nil, err
		}
		at := &next.byResource[p.Resource]
		if !copied[p.Resource] {
			copied[p.Resource] = true
			*at = (*at).clone()
		}
		of := (*at).of(p.Type)
		if len(rules) == 0 {
			delete(of, p.Name)
		} else {
			of[p.Name] = rules
		}
	}
	for resource := range copied {
		next.byResource[resource].measure()
	}
	return next, nil
}

func rulesOf(entries []Entry) ([]rule, error) {
	rules := make([]rule, len(entries))
	for i, e := range entries {
		principal, err := ParsePrincipal(e.Principal)
		if err != nil {
			return nil, err
		}
		rules[i] = rule{Entry: e, principal: principal}
	}
	return rules, nil
}

// Bindings lists what a filter chooses, by pattern.
func (t *Table) Bindings(f Filter) []Binding {
	var found []Binding
	for _, p := range t.Patterns() {
		if !f.MatchesPattern(p) {
			continue
		}
		for _, e := range t.Entries(p) {
			if f.MatchesEntry(e) {
				found = append(found, Binding{p, e})
			}
		}
	}
	return found
}

// Patterns lists the patterns that have entries, in order.
func (t *Table) Patterns() []Pattern {
	var all []Pattern
	for resource := range resources {
		ix := t.index(kmsg.ACLResourceType(resource))
		for _, kind := range []kmsg.ACLResourcePatternType{kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLResourcePatternTypePrefixed} {
			for name := range ix.of(kind) {
				all = append(all, Pattern{kmsg.ACLResourceType(resource), name, kind})
			}
		}
	}
	slices.SortFunc(all, Pattern.Compare)
	return all
}

var nothing = &index{}

func (t *Table) index(resource kmsg.ACLResourceType) *index {
	if t == nil || resource < 0 || int(resource) >= resources || t.byResource[resource] == nil {
		return nothing
	}
	return t.byResource[resource]
}

func (ix *index) of(kind kmsg.ACLResourcePatternType) map[string][]rule {
	if kind == kmsg.ACLResourcePatternTypePrefixed {
		return ix.prefixed
	}
	return ix.literal
}

func (ix *index) clone() *index {
	if ix == nil {
		return &index{literal: map[string][]rule{}, prefixed: map[string][]rule{}}
	}
	return &index{literal: maps.Clone(ix.literal), prefixed: maps.Clone(ix.prefixed)}
}

func (ix *index) measure() {
	seen := map[int]bool{0: true}
	for prefix := range ix.prefixed {
		if !seen[len(prefix)] {
			seen[len(prefix)] = true
			ix.lengths = append(ix.lengths, len(prefix))
		}
	}
	slices.Sort(ix.lengths)
}
