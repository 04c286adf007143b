package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/magiconair/properties"
	"gopkg.in/yaml.v3"
)

// Values is a broker's static configuration: what its file and overrides say, checked, over the table's defaults. It does not change.
type Values struct {
	set     map[string]string
	unknown []string
}

// Load reads a .properties file (or .yaml, .yml, whose nested keys are joined by dots), applies overrides of the form key=value in order,
// and checks every known key. An error names the key that is at fault.
func Load(path string, overrides []string) (*Values, error) {
	set := map[string]string{}
	if path != "" {
		var err error
		if set, err = readFile(path); err != nil {
			return nil, err
		}
	}
	for _, o := range overrides {
		name, value, ok := strings.Cut(o, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("override %q is not of the form key=value", o)
		}
		set[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return New(set)
}

// New checks a configuration that is already at hand.
func New(set map[string]string) (*Values, error) {
	v := &Values{set: map[string]string{}}
	for name, value := range set {
		v.set[name] = value
	}
	v.nameTheBrokerTwice()
	for _, name := range v.Names() {
		k := LookupBroker(name)
		if k == nil {
			v.unknown = append(v.unknown, name)
			continue
		}
		if v.set[name] == "" && k.Default == nil && !slices.Contains([]Type{Boolean, Int, Short, Long, Double}, k.Type) {
			continue // as good as absent
		}
		if err := k.Check(v.set[name]); err != nil {
			return nil, err
		}
	}
	return v, v.checkTogether()
}

// nameTheBrokerTwice sets that one of broker.id and node.id that is not set to the other: since Kafka 2.8 either names the broker, and both are shown.
func (v *Values) nameTheBrokerTwice() {
	broker, byBroker := v.set["broker.id"]
	node, byNode := v.set["node.id"]
	switch {
	case byBroker && !byNode:
		v.set["node.id"] = broker
	case byNode && !byBroker:
		v.set["broker.id"] = node
	}
}

func readFile(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	if ext := strings.ToLower(filepath.Ext(path)); ext == ".yaml" || ext == ".yml" {
		var tree map[string]any
		if err := yaml.Unmarshal(data, &tree); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return set, flatten(set, "", tree)
	}
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	p, err := loader.LoadBytes(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range p.Keys() {
		value, _ := p.Get(name)
		set[name] = strings.TrimSpace(value)
	}
	return set, nil
}

// flatten joins nested YAML keys by dots and list items by commas.
func flatten(set map[string]string, prefix string, node any) error {
	switch n := node.(type) {
	case map[string]any:
		for name, child := range n {
			key := name
			if prefix != "" {
				key = prefix + "." + name
			}
			if err := flatten(set, key, child); err != nil {
				return err
			}
		}
	case []any:
		items := make([]string, len(n))
		for i, item := range n {
			switch item.(type) {
			case map[string]any, []any:
				return fmt.Errorf("%s: a list may hold plain values only", prefix)
			}
			items[i] = fmt.Sprint(item)
		}
		set[prefix] = strings.Join(items, ",")
	case nil:
		set[prefix] = ""
	default:
		set[prefix] = fmt.Sprint(n)
	}
	return nil
}

// Names returns the keys that were set, sorted.
func (v *Values) Names() []string {
	names := make([]string, 0, len(v.set))
	for name := range v.set {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Unknown returns the keys that were set but that no table knows, sorted.
func (v *Values) Unknown() []string { return v.unknown }

// WithoutEffect returns the keys that were set to something else than their default and that Barnabas does not act on, sorted.
func (v *Values) WithoutEffect() []string {
	var names []string
	for _, name := range v.Names() {
		if k := LookupBroker(name); k != nil && !k.Acted && (k.Default == nil || *k.Default != v.set[name]) {
			names = append(names, name)
		}
	}
	return names
}

// Lookup returns a key's value as it was set; set is false when the default holds.
func (v *Values) Lookup(name string) (value string, set bool) {
	value, set = v.set[name]
	return value, set
}

// Get returns a key's value, or its default; ok is false when there is neither.
func (v *Values) Get(name string) (value string, ok bool) {
	if value, set := v.set[name]; set {
		return value, true
	}
	if k := lookupPlain(name); k != nil && k.Default != nil {
		return *k.Default, true
	}
	return "", false
}

// String returns a key's value, or "" when it has none.
func (v *Values) String(name string) string {
	value, _ := v.Get(name)
	return value
}

// Int returns the value of an INT, SHORT or LONG key. The table has checked it; a key without a value is 0.
func (v *Values) Int(name string) int64 {
	return wholeNumber(v.String(name))
}

// IntForListener returns the value of an INT, SHORT or LONG key that holds for a listener.
func (v *Values) IntForListener(listener, name string) int64 {
	return wholeNumber(v.ForListener(listener, name))
}

// wholeNumber reads a value that the table has checked. Dynamic settings may have spaces around them.
func wholeNumber(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}

// Float returns the value of a DOUBLE key.
func (v *Values) Float(name string) float64 {
	f, _ := ParseDouble(v.String(name))
	return f
}

// Bool returns the value of a BOOLEAN key.
func (v *Values) Bool(name string) bool {
	return strings.EqualFold(strings.TrimSpace(v.String(name)), "true")
}

// Millis returns the value of a key in milliseconds as a duration, cut off at the longest one.
func (v *Values) Millis(name string) time.Duration {
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(v.Int(name), longest)) * time.Millisecond
}

// List returns the items of a LIST key, or of a STRING key that holds a list.
func (v *Values) List(name string) []string { return SplitList(v.String(name)) }

// ProtocolVersion returns the value of a key that holds a protocol version.
func (v *Values) ProtocolVersion(name string) ProtocolVersion {
	p, _ := ParseProtocolVersion(v.String(name))
	return p
}

// LogDirs returns the directories of the logs. An empty log.dirs is no fall back to log.dir: a template that was filled in badly must not put the data below /tmp.
func (v *Values) LogDirs() []string {
	name := "log.dir"
	if _, set := v.Lookup("log.dirs"); set {
		name = "log.dirs"
	}
	return slices.DeleteFunc(v.List(name), func(dir string) bool { return dir == "" })
}
