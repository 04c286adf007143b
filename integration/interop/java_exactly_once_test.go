package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
)

const (
	javaRuns       = 3 // of the copier, unless $BARNABAS_JAVA_RUNS says otherwise
	javaRecords    = 1000
	javaThroughput = 500
)

// Java's own programs for proving what a cluster promises, while their coordinators and the leader of what they write are killed in turn: what VerifiableProducer writes is there once and in order, the members of a group of
// VerifiableConsumers see all of it, and TransactionalMessageCopier, run again and again and aborting some of its transactions at random, makes an exact copy.
func TestJavasProgramsKeepExactlyOnceWhileBrokersAreKilled(t *testing.T) {
	lane.Java(t)
	lane.KafkaJars(t, "3.9.1")
	runs := javaRuns
	if asked, err := strconv.Atoi(os.Getenv("BARNABAS_JAVA_RUNS")); err == nil {
		runs = asked
	}
	n := runs * javaRecords
	c := exactlyOnce(t)
	done, killed := make(chan struct{}), make(chan int, 1)
	go func() {
		defer close(killed) // also when it fails
		killed <- killInTurn(t, c, "java-copier", "java-copier", done)
	}()

	s := &groupStage{t: t, bootstrap: c.Bootstrap(), topic: "input", group: "verified", partitions: 1, seen: &sightings{at: map[int32]map[int64]int{}}}
	stops := []func(){javaVerifiableMember("3.9.1")(t, s), javaVerifiableMember("3.9.1")(t, s)}
	config := filepath.Join(t.TempDir(), "producer.properties")
	require.NoError(t, os.WriteFile(config, []byte("enable.idempotence=true\nretries=2147483647\n"), 0o600)) // it retries nothing by itself
	acked := javaTool(t, "3.9.1", "", "org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", c.Bootstrap(), "--topic", "input", "--max-messages", fmt.Sprint(n),
		"--throughput", fmt.Sprint(javaThroughput), "--acks", "-1", "--producer.config", config)
	for range runs {
		javaTool(t, "3.9.1", "", "org.apache.kafka.tools.TransactionalMessageCopier", "--broker-list", c.Bootstrap(), "--input-topic", "input", "--input-partition", "0",
			"--output-topic", "output", "--max-messages", fmt.Sprint(javaRecords), "--consumer-group", "java-copier", "--transaction-size", "50", "--transaction-timeout", "20000",
			"--transactional-id", "java-copier", "--enable-random-aborts", "--use-group-metadata")
	}
	s.eventually(func() string {
		if missing := s.seen.missing(1, int64(n)); missing > 0 {
			return fmt.Sprintf("%d records are not seen", missing)
		}
		return ""
	})
	close(done)
	kills := <-killed
	for _, stop := range stops {
		stop()
	}
	input := committed(t, c, "input", n)
	requireEachOnceInOrder(t, input, n)
	requireAcked(t, acked, input)
	requireEachOnceInOrder(t, committed(t, c, "output", n), n)
	t.Logf("%d records, %d brokers killed", n, kills)
	require.Greater(t, kills, runs)
}

// requireAcked compares what VerifiableProducer says with what is there: each value, at the offset that was acknowledged.
func requireAcked(t *testing.T, lines *os.File, values []string) {
	t.Helper()
	text, err := os.ReadFile(lines.Name())
	require.NoError(t, err)
	acked := 0
	for line := range strings.Lines(string(text)) {
		var said struct {
			Name   string `json:"name"`
			Value  string `json:"value"`
			Offset int    `json:"offset"`
		}
		if json.Unmarshal([]byte(line), &said) == nil && said.Name == "producer_send_success" {
			acked++
			require.Equal(t, said.Value, values[said.Offset], "at offset %d", said.Offset)
		}
	}
	require.Equal(t, len(values), acked)
}
