package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Type is the type of a key's value, as Kafka's DescribeConfigs answers name it.
type Type int8

const (
	Boolean Type = iota + 1
	String
	Int
	Short
	Long
	Double
	List
	Class
	Password
)

var typeNames = [...]string{Boolean: "BOOLEAN", String: "STRING", Int: "INT", Short: "SHORT", Long: "LONG", Double: "DOUBLE", List: "LIST", Class: "CLASS", Password: "PASSWORD"}

func (t Type) String() string { return typeNames[t] }

// Importance is how likely a user is to need a key.
type Importance int8

const (
	Low Importance = iota
	Medium
	High
)

func (i Importance) String() string { return [...]string{"low", "medium", "high"}[i] }

// UpdateMode tells whether a broker key may change while the broker runs (KIP-226).
type UpdateMode int8

const (
	// ReadOnly keys change by a restart only.
	ReadOnly UpdateMode = iota
	// PerBroker keys may be changed for one broker.
	PerBroker
	// ClusterWide keys may be changed for one broker or as a default of all.
	ClusterWide
)

func (m UpdateMode) String() string { return [...]string{"read-only", "per-broker", "cluster-wide"}[m] }

// Key is one row of a table.
type Key struct {
	Name       string
	Type       Type
	Default    *string // nil: no default (null)
	Valid      Validator
	Importance Importance
	Update     UpdateMode
	Synonyms   []Synonym // of a topic key: where its default comes from, first set one wins
	Internal   bool      // not shown to users by Kafka's documentation
	Retired    bool      // gone in 3.9, accepted since 2.8 knew it
	Acted      bool      // Barnabas acts on it; the others are accepted, and named in the log when they are set
	Doc        string
}

// Synonym is a broker key from which a topic key takes its default; Factor converts its unit, 0 meaning that the value is used as it is.
type Synonym struct {
	Name   string
	Factor int64
}

// InvalidError says why a value is refused. Its text is the one that Kafka's ConfigException has.
type InvalidError struct {
	Name, Value, Reason string
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("Invalid value %s for configuration %s: %s", e.Value, e.Name, e.Reason)
}

// ContradictionError says that settings which are legal one by one do not go together. Its text is the one that Kafka's has.
type ContradictionError struct{ Reason string }

func (e *ContradictionError) Error() string { return "requirement failed: " + e.Reason }

// Check tells whether value is legal for the key: first its type, then its valid range. The error is an [*InvalidError].
func (k *Key) Check(value string) error {
	shown, reason := k.check(value)
	if reason == "" {
		return nil
	}
	if k.Type == Password {
		shown = "[hidden]"
	}
	return &InvalidError{Name: k.Name, Value: shown, Reason: reason}
}

func (k *Key) check(value string) (shown, reason string) {
	value = strings.TrimSpace(value)
	v := Value{name: k.Name}
	switch k.Type {
	case Boolean:
		if !strings.EqualFold(value, "true") && !strings.EqualFold(value, "false") {
			return value, "Expected value to be either true or false"
		}
	case Int, Short, Long:
		bits := map[Type]int{Short: 16, Int: 32, Long: 64}[k.Type]
		n, err := strconv.ParseInt(value, 10, bits)
		if err != nil {
			return value, "Not a number of type " + k.Type.String()
		}
		v.number, value = float64(n), strconv.FormatInt(n, 10)
	case Double:
		f, err := ParseDouble(value)
		if err != nil {
			return value, "Not a number of type DOUBLE"
		}
		v.number, value = f, FormatDouble(f)
	case List:
		v.items = SplitList(value)
		value = "[" + strings.Join(v.items, ", ") + "]"
	}
	v.text, shown = value, value
	v.shown = &shown
	if k.Valid != nil {
		reason = k.Valid(v)
	}
	return shown, reason
}

// SplitList splits a LIST value at commas and trims the items; an empty value is an empty list.
func SplitList(value string) []string {
	if strings.TrimSpace(value) == "" {
		return nil
	}
	items := strings.Split(value, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}
