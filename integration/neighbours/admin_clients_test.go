package neighbours

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
)

// The admin clients that scripts are written with: librdkafka's, called for all that it offers, and the command line of kafka-python.

func playAdminClient(s *scene) {
	script, err := filepath.Abs(filepath.Join("testdata", "admin_client.py"))
	require.NoError(s, err)
	for l := range strings.Lines(s.run("", lane.Program(s, "python3"), "-W", "ignore", script, s.Bootstrap())) {
		if strings.HasPrefix(l, "%") { // librdkafka's log of connections
			continue
		}
		require.True(s, strings.HasPrefix(l, "{"), "%s", l)
		s.say("librdkafka's admin client", canonical(s.mask(l)))
	}
	s.settled()
}

// kafkaPythonCalls are what people type.
var kafkaPythonCalls = []string{
	"cluster describe", "cluster broker-version --broker 2", "cluster describe-features", "cluster describe-log-dirs --topic orders",
	"topics describe -t orders -t payments", "topics describe -t nowhere", "topics create -t typed --num-partitions 1 --replication-factor 3", "topics create -t orders --num-partitions 1",
	"configs describe -r topic -n payments --modified", "configs alter -r topic -n typed -c retention.ms=5000 -c cleanup.policy=add(compact)", "configs describe -r topic -n typed --modified",
	"configs reset -r topic -n typed -c retention.ms", "configs describe -r broker -n 1 --static",
	"partitions create -p typed:1", "partitions list-offsets -t orders -s latest",
	"partitions alter-reassignments -r orders:0=1,9", "partitions elect-leaders -t orders",
	"groups describe -g live -g billing -g nobodys", "groups list-offsets -g audit", "groups alter-offsets -g typing -o orders:0:3 -o orders:1:4", "groups reset-offsets -g typing -s earliest",
	"groups delete-offsets -g typing -p orders:1", "groups delete -g typing", "groups delete -g live",
	"acls describe", "topics delete -t typed",
}

// diskSpace is what else happens on the machine.
var diskSpace = regexp.MustCompile(`"(total_bytes|usable_bytes)": ?[0-9.e+]+`)

func playKafkaPython(s *scene) {
	program := lane.Program(s, "kafka-python")
	for _, call := range kafkaPythonCalls {
		out, code := s.try("", program, append([]string{"admin", "-b", s.Brokers[0].Addr, "--format", "json"}, strings.Fields(call)...)...)
		s.say("kafka-python admin "+call, fmt.Sprintf("%s\nexit code %d", diskSpace.ReplaceAllString(canonical(s.mask(out)), `"$1":"SOME"`), code))
	}
	s.until("typed is gone", func() bool { return s.node("/brokers/topics/typed") == "none" })
}
