package config

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
)

// Table is a set of keys, sorted by name.
type Table struct{ keys []Key }

// Broker is the table of broker keys, Topic that of topic keys, Own that of broker keys beside Kafka's.
var (
	Broker = Table{brokerKeys}
	Topic  = Table{topicKeys}
	Own    = Table{ownKeys}
)

// Lookup returns the row of a key, or nil.
func (t Table) Lookup(name string) *Key {
	i, found := slices.BinarySearchFunc(t.keys, name, func(k Key, name string) int { return strings.Compare(k.Name, name) })
	if !found {
		return nil
	}
	return &t.keys[i]
}

// Keys returns the rows, sorted by name. The slice is shared and not to be changed.
func (t Table) Keys() []Key { return t.keys }

// WriteHelp prints the table for people.
func (t Table) WriteHelp(w io.Writer) error {
	for _, k := range t.keys {
		if k.Internal {
			continue
		}
		def := "none"
		if k.Default != nil {
			def = *k.Default
			if def == "" {
				def = `""`
			}
		}
		notes := []string{strings.ToLower(k.Type.String()), "default " + def, k.Importance.String() + " importance", k.Update.String()}
		if k.Retired {
			notes = append(notes, "retired")
		}
		if !k.Acted {
			notes = append(notes, "accepted without effect")
		}
		if _, err := fmt.Fprintf(w, "%s  (%s)\n    %s\n", k.Name, strings.Join(notes, ", "), k.Doc); err != nil {
			return err
		}
	}
	return nil
}

func lookupPlain(name string) *Key {
	if k := Broker.Lookup(name); k != nil {
		return k
	}
	return Own.Lookup(name)
}

// listenerPrefix begins keys that hold for one listener only, as in listener.name.internal.max.connections.
const listenerPrefix = "listener.name."

// LookupBroker finds the row of a broker key as a file may write it: plain, or behind a listener's prefix (and, for SASL, a mechanism's).
func LookupBroker(name string) *Key {
	if k := lookupPlain(name); k != nil {
		return k
	}
	rest, ok := strings.CutPrefix(name, listenerPrefix)
	if !ok {
		return nil
	}
	for range 2 {
		if _, rest, ok = strings.Cut(rest, "."); !ok {
			return nil
		}
		if k := Broker.Lookup(rest); k != nil {
			return k
		}
	}
	return nil
}

// BrokerSynonyms lists the keys that stand for a broker key, in the order of precedence, itself included: a listener's key falls back to
// the plain one, and the times of logs may be given in several units.
func BrokerSynonyms(name string) []string {
	for _, family := range [][]string{
		{"log.roll.ms", "log.roll.hours"},
		{"log.roll.jitter.ms", "log.roll.jitter.hours"},
		{"log.retention.ms", "log.retention.minutes", "log.retention.hours"},
	} {
		if slices.Contains(family, name) {
			return family
		}
	}
	if name == "log.flush.interval.ms" {
		return []string{name, "log.flush.scheduler.interval.ms"} // a default for the first, not its equal
	}
	if k := LookupBroker(name); k != nil && k.Name != name {
		return []string{name, k.Name}
	}
	return []string{name}
}

func init() {
	for _, t := range []Table{Broker, Topic} {
		if !sort.SliceIsSorted(t.keys, func(i, j int) bool { return t.keys[i].Name < t.keys[j].Name }) {
			panic("config: a table is not sorted by name")
		}
	}
}
