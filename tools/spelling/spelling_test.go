package spelling

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTypingErrorsAreSeenThrough(t *testing.T) {
	known := []string{"bootstrap-server", "topic", "topics-include", "partition", "partitions", "list", "describe", "describe-producers"}
	for word, want := range map[string][]string{
		"boostrap-server": {"bootstrap-server"}, "bootstrap-sevrer": {"bootstrap-server"}, "bootstrap": {"bootstrap-server"}, "topics": {"topic", "topics-include"}, "lst": {"list"},
		"partitoin": {"partition", "partitions"}, "descirbe": {"describe"}, "zookeeper": nil, "x": nil, "": nil, strings.Repeat("topic", 100): nil,
	} {
		assert.Equal(t, want, Closest(word, known), word)
	}
}
