package admin

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// maxTopicName is the longest name of a topic: a directory's name has to hold it together with a partition and the
// suffix of a deleted or a future log.
const maxTopicName = 249

// ValidateTopicName refuses names that Kafka refuses, with INVALID_TOPIC_EXCEPTION.
func ValidateTopicName(name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "the empty string is not allowed"
	case name == ".", name == "..":
		reason = "'" + name + "' is not allowed"
	case len(name) > maxTopicName:
		reason = "the length of '" + name + "' is longer than the max allowed length 249"
	case strings.ContainsFunc(name, func(r rune) bool { return !legalInTopic(r) }):
		reason = "'" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
	default:
		return nil
	}
	return failed(kerr.InvalidTopicException, "Topic name is invalid: %s", reason)
}

func legalInTopic(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// Names that differ only in '.' and '_' would share a metric's name, in which Kafka replaces one by the other.

// mayCollide tells whether a name has a character that can make it collide with another.
func mayCollide(name string) bool { return strings.ContainsAny(name, "._") }

// collide tells whether two names differ at most in '.' and '_'.
func collide(a, b string) bool {
	return strings.ReplaceAll(a, ".", "_") == strings.ReplaceAll(b, ".", "_")
}
