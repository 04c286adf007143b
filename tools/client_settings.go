package tools

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// clientSettings are the settings of a Java client, by name. A fault in one of them stays, so that it can be asked for once, at the end.
type clientSettings struct {
	of    map[string]string
	fault error
}

// number is a setting that must not be negative, or def where it is not set.
func (s *clientSettings) number(name string, def int64) int64 {
	text, given := s.of[name]
	if !given {
		return def
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		s.fault = &badArgument{fmt.Sprintf("Invalid value %s for configuration %s: Not a number of type INT", text, name)}
	}
	return n
}

// millis is a setting in milliseconds.
func (s *clientSettings) millis(name string, def int64) time.Duration {
	return time.Duration(s.number(name, def)) * time.Millisecond
}

// named is one of the things that a setting may name.
type named[T any] struct {
	name  string
	value T
}

// choice is a setting that names one of some things, or the one called def where it is not set.
func choice[T any](s *clientSettings, name, def string, known []named[T]) (value T) {
	text := s.of[name]
	if text == "" {
		text = def
	}
	names := make([]string, len(known))
	for i, k := range known {
		if names[i] = k.name; k.name == text {
			return k.value
		}
	}
	s.fault = &badArgument{fmt.Sprintf("Invalid value %s for configuration %s: String must be one of: %s", text, name, strings.Join(names, ", "))}
	return value
}
