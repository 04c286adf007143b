package config

import (
	"strconv"
	"strings"
)

// TopicDefault returns the default of a topic key on a broker with this configuration: that of the first of its synonyms that is set, or
// the table's. from names the synonym that was set, or is empty.
func (v *Values) TopicDefault(name string) (value string, from string) {
	k := Topic.Lookup(name)
	if k == nil {
		return "", ""
	}
	for _, s := range k.Synonyms {
		set, ok := v.set[s.Name]
		if !ok || set == "" {
			continue
		}
		return s.Convert(set), s.Name
	}
	if k.Default == nil {
		return "", ""
	}
	return *k.Default, ""
}

// Convert returns a synonym's value in the unit of the topic key; a negative value, which means no limit, stays -1.
func (s Synonym) Convert(value string) string {
	if s.Factor == 0 {
		return value
	}
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil {
		return value
	}
	if n < 0 {
		return "-1"
	}
	return strconv.FormatInt(n*s.Factor, 10)
}
