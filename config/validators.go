package config

import (
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Value is a parsed value as a validator sees it.
type Value struct {
	name   string // of the key
	text   string
	number float64
	items  []string
	shown  *string // what an error shows of the value; a validator may narrow it to the part at fault
}

// Validator returns why a value is not valid, in Kafka's words, or "" if it is.
type Validator func(Value) string

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func atLeast(low float64) Validator {
	return func(v Value) string {
		if v.number < low {
			return "Value must be at least " + number(low)
		}
		return ""
	}
}

func between(low, high float64) Validator {
	return func(v Value) string {
		if v.number < low {
			return "Value must be at least " + number(low)
		}
		if v.number > high {
			return "Value must be no more than " + number(high)
		}
		return ""
	}
}

func atLeastOrMinusOne(low float64) Validator {
	return func(v Value) string {
		if v.number == -1 {
			return ""
		}
		return atLeast(low)(v)
	}
}

// hostAndPort accepts an address to listen on, and nothing.
func hostAndPort(v Value) string {
	if v.text == "" {
		return ""
	}
	_, port, err := net.SplitHostPort(v.text)
	if err != nil {
		return "Value must be host:port"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "Port must be a number from 0 to 65535"
	}
	return ""
}

// gzipLevel accepts gzip's levels and -1 for the codec's own default.
func gzipLevel(v Value) string {
	if v.number == -1 || v.number >= 1 && v.number <= 9 {
		return ""
	}
	return "Value must be between 1 and 9 or equal to -1"
}

func oneOf(legal ...string) Validator {
	return func(v Value) string {
		if slices.Contains(legal, v.text) {
			return ""
		}
		return "String must be one of: " + strings.Join(legal, ", ")
	}
}

func oneOfFold(legal ...string) Validator {
	return func(v Value) string {
		if slices.Contains(legal, strings.ToUpper(v.text)) {
			return ""
		}
		return "String must be one of (case insensitive): " + strings.Join(legal, ", ")
	}
}

func eachOneOf(legal ...string) Validator {
	return func(v Value) string {
		for _, item := range v.items {
			if reason := oneOf(legal...)(Value{text: item}); reason != "" {
				*v.shown = item
				return reason
			}
		}
		return ""
	}
}

func nonEmpty(v Value) string {
	if v.text == "" {
		return "String must be non-empty"
	}
	return ""
}

var throttledReplica = regexp.MustCompile(`^[0-9]+:[0-9]+$`)

// throttledReplicas accepts nothing, the wildcard *, or a list of partition:broker pairs.
func throttledReplicas(v Value) string {
	if strings.Join(v.items, "") == "*" {
		return ""
	}
	for _, item := range v.items {
		if item != "" && !throttledReplica.MatchString(item) { // a list may end in a comma
			return v.name + " must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
		}
	}
	return ""
}

// protocolVersion accepts every release's name that Kafka 3.9 knows: with or without its internal step, as 2.8 and 2.8-IV1.
func protocolVersion(v Value) string {
	p, err := ParseProtocolVersion(v.text)
	if err == nil && p > V3_9IV0 {
		err = noVersion(v.text) // Kafka 3.9 knows the name, and does not serve it
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
