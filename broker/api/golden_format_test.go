package api

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The goldens under testdata/golden are requests and the answers that Apache
// Kafka 3.9.1 gave to them, both as frames without their length. They are
// recorded by TestRecordGoldens and replayed by TestAnswersAsKafkaDoes.

// exchange is one recorded request with its answer; an empty answer means that
// the connection was closed.
type exchange struct {
	name     string
	door     string // the listener that was asked: PLAINTEXT or OUT of broker 1, B2 of broker 2
	request  []byte
	response []byte
}

// recordedCluster is what the answers depend on.
type recordedCluster struct {
	clusterID string
	topicIDs  map[string][16]byte
	doors     map[string]string // addresses of PLAINTEXT and B2, which are advertised
}

const goldenFolder = "testdata/golden"

func writeGolden(t *testing.T, file string, exchanges []exchange) {
	var b strings.Builder
	b.WriteString("# Requests, and how Apache Kafka 3.9.1 (ZooKeeper mode) answered them. Written by TestRecordGoldens.\n")
	for _, e := range exchanges {
		fmt.Fprintf(&b, "\n= %s @%s\n> %s\n< %s\n", e.name, e.door, hex.EncodeToString(e.request), hex.EncodeToString(e.response))
	}
	require.NoError(t, os.WriteFile(filepath.Join(goldenFolder, file+".txt"), []byte(b.String()), 0o644))
}

func readGolden(t testing.TB, file string) []exchange {
	var all []exchange
	for _, line := range goldenLines(t, file) {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "=":
			name, door, found := strings.Cut(rest, " @")
			require.True(t, found, line)
			all = append(all, exchange{name: name, door: door})
		case ">":
			all[len(all)-1].request = unhex(t, rest)
		case "<":
			all[len(all)-1].response = unhex(t, rest)
		default:
			t.Fatalf("%s: %q", file, line)
		}
	}
	require.NotEmpty(t, all, file)
	return all
}

func goldenLines(t testing.TB, file string) (lines []string) {
	f, err := os.Open(filepath.Join(goldenFolder, file+".txt"))
	require.NoError(t, err)
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		if line := s.Text(); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	require.NoError(t, s.Err())
	return lines
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func (c recordedCluster) write(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The cluster that the goldens were recorded from. Written by TestRecordGoldens.\n")
	fmt.Fprintf(&b, "cluster %s\n", c.clusterID)
	fmt.Fprintf(&b, "door PLAINTEXT %s\ndoor B2 %s\n", c.doors["PLAINTEXT"], c.doors["B2"])
	names := make([]string, 0, len(c.topicIDs))
	for name := range c.topicIDs {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		id := c.topicIDs[name]
		fmt.Fprintf(&b, "topic %s %s\n", name, hex.EncodeToString(id[:]))
	}
	require.NoError(t, os.WriteFile(filepath.Join(goldenFolder, "cluster.txt"), []byte(b.String()), 0o644))
}

func readCluster(t *testing.T) recordedCluster {
	c := recordedCluster{topicIDs: make(map[string][16]byte), doors: make(map[string]string)}
	for _, line := range goldenLines(t, "cluster") {
		f := strings.Fields(line)
		switch {
		case f[0] == "cluster" && len(f) == 2:
			c.clusterID = f[1]
		case f[0] == "door" && len(f) == 3:
			c.doors[f[1]] = f[2]
		case f[0] == "topic" && len(f) == 3:
			c.topicIDs[f[1]] = [16]byte(unhex(t, f[2]))
		default:
			t.Fatalf("cluster: %q", line)
		}
	}
	return c
}
