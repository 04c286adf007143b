package neighbours

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// kafka-console is a command line over a client of its own in JavaScript.
var kafkaConsoleCalls = []string{
	"metadata", "list", "list --all", "config -r topic -n payments", "topic:create chatted -p 2 -r 3", "topic:create orders", "topic:create too-far -r 4",
	"topic:offsets orders", "topic:offsets orders 2020-01-01T00:00:04.500Z", "topic:offsets orders --group audit", "consume orders --snapshot -d raw", "topic:delete chatted",
}

func playKafkaConsole(s *scene) {
	s.create(s.T, "chat", [][]int32{{1, 2}}, nil)
	run := func(call, stdin string) (string, int) {
		return s.try(stdin, s.program("node/node_modules/.bin/kafka-console"), append([]string{"-b", s.Bootstrap(), "-t", "60000"}, strings.Fields(call)...)...)
	}
	for _, call := range kafkaConsoleCalls {
		out, code := run(call, "")
		s.say("kafka-console "+call, fmt.Sprintf("%s\nexit code %d", linesOf(s, out), code))
		if call == "topic:create chatted -p 2 -r 3" {
			s.WaitWhole(s.T, "chatted", 2, 3)
		}
	}
	out, code := run("produce chat -d raw -H from:here", `{"key":"k","value":"said"}`+"\n")
	require.Zero(s, code, "%s", out)
	out, code = run("consume chat --snapshot -d raw", "")
	require.Zero(s, code, "%s", out)
	s.say("kafka-console consume chat", linesOf(s, out))
	s.delete("chat")
}

// linesOf is a text of documents of JSON, one a line, in an order that no address has a say in.
func linesOf(s *scene, text string) string {
	var documents []string
	for l := range strings.Lines(s.mask(text)) {
		documents = append(documents, canonical(strings.TrimSpace(l)))
	}
	slices.Sort(documents)
	return strings.Join(documents, "\n")
}
