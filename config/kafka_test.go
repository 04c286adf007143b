package config

import (
	"bytes"
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
)

// A broker of ours starts with the files that Apache Kafka starts with, and not with those that it refuses: each key alone, with values of every kind and size.
func TestAFileIsRefusedWhereApacheKafkaRefusesIt(t *testing.T) {
	java, jars := lane.Java(t), lane.KafkaJars(t, "3.9.1")
	values := strings.Split("|-3|-2|-1|0|1|2|5|9|10|14|16|21|100|1024|32768|1048576|2147483647|2147483648|9223372036854775807|9223372036854775808| 7 |+7|007|0x10|1_000|1.0|0.5|1.5|NaN|1e400|inf|0.5d|"+
		"abc|true|FALSE|yes|a,b|delete|compact,delete|compact,compact|delete,|,|*|PLAIN|producer|Producer|gzip|none|uncompressed|LogAppendTime|createtime|2.8|3.9-IV0|4.0|REQUIRED|requested|SSL|ssl|"+
		"localhost:5|127.0.0.1:5,|PLAINTEXT:PLAINTEXT|PLAINTEXT://x:1", "|")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	judge := exec.CommandContext(ctx, java, append([]string{"-XX:TieredStopAtLevel=1", "-cp", jars + "/*", "testdata/judge/Start.java"}, values...)...)
	var complaints bytes.Buffer
	judge.Stderr = &complaints
	out, err := judge.Output()
	require.NoError(t, err, complaints.String())
	judged := 0
	for line := range strings.Lines(string(out)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		require.Len(t, f, 3, line)
		i, err := strconv.Atoi(f[1])
		require.NoError(t, err)
		name, value, verdict := f[0], values[i], f[2]
		if differsOnPurpose(name, value) {
			continue
		}
		judged++
		_, err = New(map[string]string{"broker.id": "1", "zookeeper.connect": "z:2181", name: value})
		assert.Equal(t, verdict == "ok", err == nil, "%s=%q: Kafka says %s, Barnabas %v", name, value, verdict, err)
	}
	assert.Greater(t, judged, 10_000)
}

// differsOnPurpose tells the keys, or values, that are judged in another way than Kafka does it.
func differsOnPurpose(name, value string) bool {
	if k := Broker.Lookup(name); k == nil || k.Type == Class {
		return true // no Java class is looked for
	}
	for _, kraft := range []string{"controller.", "early.start.", "group.consumer.", "group.share.", "group.coordinator.rebalance.", "process.roles", "remote.log.metadata.manager.", "remote.log.storage.manager.", "zookeeper.metadata.migration."} {
		if strings.HasPrefix(name, kraft) {
			return true // has no effect here
		}
	}
	switch name {
	case "authorizer.class.name": // no Java class either, though Kafka calls it a text
		return true
	case "control.plane.listener.name", "inter.broker.listener.name":
		return value == "" // as good as absent
	case "inter.broker.protocol.version":
		return strings.HasPrefix(value, "1.") // before 2.4 other brokers are not understood
	}
	return false
}
