package interop

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// A log directory that Apache Kafka left, after a clean stop and after a kill, and the ZooKeeper tree that belongs to it, are taken over by Barnabas: it serves every record that Kafka's own
// dump lists, leaves the segments as they were, and Kafka, started on what Barnabas left, serves them again.
func TestBarnabasTakesOverADirectoryOfKafkaAndGivesItBack(t *testing.T) {
	for _, version := range []string{"2.8.2", "3.9.1"} {
		for _, how := range []string{"clean", "crashed"} {
			t.Run(version+" "+how, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				archives := map[string]string{"clean": "../../broker/record/testdata", "crashed": "testdata/datadirs"}
				unpack(t, filepath.Join(archives[how], version+"-"+how+".tar.gz"), dir)
				unpack(t, "../../tools/dumplog/testdata/"+version+"-dump.tar.gz", dir)
				want := dumpedRecords(t, filepath.Join(dir, "dump"))
				require.Len(t, want, 7, "topics of format 2")

				zk := zktest.Embedded(t)
				plantTree(t, zk.Addr(), "testdata/datadirs/"+version+"-znodes.txt")
				logs := filepath.Join(dir, how)
				c := cluster.Start(t, zk.Addr(), 1, map[string]string{"log.dirs": logs, "log.retention.ms": "-1", "log.cleaner.enable": "false"})
				b := c.Brokers[0]
				for topic, records := range want {
					requireRecords(t, b.Addr, topic, records)
				}
				b.Stop(t)
				for topic := range want {
					requireSameDump(t, version, logs, filepath.Join(dir, "dump"), topic)
				}

				lane.KafkaJars(t, "3.9.1")
				b.Become(cluster.Kafka("3.9.1"))
				b.Start(t)
				b.WaitReady(t)
				for topic, records := range want {
					requireRecords(t, b.Addr, topic, records)
				}
			})
		}
	}
}

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		name := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.Typeflag != tar.TypeReg {
			require.NoError(t, os.MkdirAll(name, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, data, 0o644))
	}
}

// plantTree makes the nodes of a recorded tree: path, kind, version and data, with tabs between.
func plantTree(t *testing.T, zookeeper, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	zk := connect(t, zookeeper)
	defer zk.Close()
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		require.Len(t, fields, 4, "%q", line)
		if fields[1] != "persistent" || fields[0] == "/" {
			continue
		}
		var data []byte
		if fields[3] != "null" {
			data = []byte(fields[3])
		}
		_, err := zk.One(lane.Patience(t), zkstate.Create(fields[0], data))
		if !errors.Is(err, zkstate.ErrNodeExists) {
			require.NoError(t, err, fields[0])
		}
	}
}

// dumped is what a dump says of one record.
type dumped struct {
	offset, timestamp string
	keySize, size     string
	headers, key      string
	value             string
}

// dumpedFields are the fields that a record's line has in every version, wherever they stand in it.
var dumpedFields = []*regexp.Regexp{
	regexp.MustCompile(`^\| offset: (\d+)`), regexp.MustCompile(` CreateTime: (-?\d+)`), regexp.MustCompile(` key[sS]ize: (-?\d+)`), regexp.MustCompile(` value[sS]ize: (-?\d+)`),
	regexp.MustCompile(` headerKeys: \[([^\]]*)\]`), regexp.MustCompile(`\] key: (\S*)`), regexp.MustCompile(` payload: (.*)$`),
}

func parseDumped(line string) (d dumped) {
	for i, field := range []*string{&d.offset, &d.timestamp, &d.keySize, &d.size, &d.headers, &d.key, &d.value} {
		if m := dumpedFields[i].FindStringSubmatch(line); m != nil {
			*field = m[1]
		}
	}
	return d
}

// dumpedRecords reads Kafka's dumps of every segment of the topics in format 2; markers of transactions are no records.
func dumpedRecords(t *testing.T, dir string) map[string][]dumped {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*-0-*.txt"))
	require.NoError(t, err)
	all := map[string][]dumped{}
	for _, file := range files { // in the order of their base offsets
		topic, _, _ := strings.Cut(filepath.Base(file), "-0-0")
		if !strings.HasPrefix(topic, "fmt-v2-") && topic != "txn" && topic != "compacted" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "| offset") || strings.Contains(line, "endTxnMarker") {
				continue
			}
			all[topic] = append(all[topic], parseDumped(strings.TrimSuffix(line, "\n")))
		}
	}
	return all
}

// requireRecords reads a topic from its start and compares it, record by record.
func requireRecords(t *testing.T, addr, topic string, want []dumped) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	require.NoError(t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	size := func(b []byte) string {
		if b == nil {
			return "-1"
		}
		return fmt.Sprint(len(b))
	}
	for n := 0; n < len(want); {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, fetches.Err(), "%s after %d records", topic, n)
		for it := fetches.RecordIter(); !it.Done(); n++ {
			r := it.Next()
			var headers []string
			for _, h := range r.Headers {
				headers = append(headers, h.Key)
			}
			require.Less(t, n, len(want), "%s has more than it should", topic)
			got := dumped{fmt.Sprint(r.Offset), fmt.Sprint(r.Timestamp.UnixMilli()), size(r.Key), size(r.Value), strings.Join(headers, ","), string(r.Key), string(r.Value)}
			require.Equal(t, want[n], got, "record %d of %s", n, topic)
		}
	}
}

// requireSameDump holds that our dump of what is there now has the lines of Kafka's dump.
func requireSameDump(t *testing.T, version, logs, dumps, topic string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dumps, topic+"-0-0*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		segment := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), topic+"-0-"), ".txt") + ".log"
		cmd := exec.Command(cluster.Binary(t), "kafka-dump-log", "--files", filepath.Join(logs, topic+"-0", segment), "--print-data-log")
		cmd.Env = append(os.Environ(), "BARNABAS_COMPAT="+version)
		got, err := cmd.Output()
		require.NoError(t, err)
		lines := func(text []byte) []string { // the first names the file
			_, rest, _ := strings.Cut(string(text), "\n")
			return strings.Split(rest, "\n")
		}
		assert.Equal(t, lines(want), lines(got), "%s of %s", segment, topic)
	}
}
