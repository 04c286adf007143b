package interop

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/broker/record"
	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

// A record of one replica is replaced by another of the same length, with a checksum that is right: nothing that one broker can check alone is wrong then.
func TestAReplicaThatDiffersIsFound(t *testing.T) {
	c := cluster.Start(t, zktest.Embedded(t).Addr(), 2, nil)
	client := franz(t, c, kgo.DefaultProduceTopic("t"))
	_, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 2, nil, "t")
	require.NoError(t, err)
	c.WaitWhole(t, "t", 1, 2)
	require.NoError(t, client.ProduceSync(t.Context(), &kgo.Record{Value: []byte("right")}).FirstErr())
	found := verification(t, c.Bootstrap(), "max lag is 0 ")
	assert.Contains(t, found, "verification process is started.\n")
	assert.Contains(t, found, "max lag is 0 for partition t-0 at offset 1 among 1 partitions\n")
	assert.NotContains(t, found, "checksum")

	c.Brokers[1].Stop(t)
	replaceRecord(t, filepath.Join(c.Brokers[1].Dir, "t-0", "00000000000000000000.log"), "right", "wrong")
	c.Brokers[1].Start(t)
	c.Brokers[1].WaitReady(t)
	c.WaitWhole(t, "t", 1, 2)
	assert.Contains(t, verification(t, c.Bootstrap(), "max lag is 0 "), "partition t-0 has unmatched checksum at offset 0; replica ")
}

// replaceRecord changes the value of the only record of a segment.
func replaceRecord(t *testing.T, path, value, other string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	batch := record.Batch(strings.Replace(string(text), value, other, 1))
	const crcAt, crcFrom = 17, 21 // of a batch of format 2
	binary.BigEndian.PutUint32(batch[crcAt:], crc32.Checksum(batch[crcFrom:], crc32.MakeTable(crc32.Castagnoli)))
	require.NoError(t, batch.CheckCRC())
	require.NoError(t, os.WriteFile(path, batch, 0o600))
}

// verification runs the tool from the beginning of all topics until it says something.
func verification(t *testing.T, bootstrap, until string) string {
	t.Helper()
	cmd := exec.Command(cluster.Binary(t), "kafka-replica-verification", "--broker-list", bootstrap, "--topics-include", "t", "--time", "-2", "--report-interval-ms", "200", "--max-wait-ms", "100")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	stuck := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	var said strings.Builder
	for lines := bufio.NewScanner(io.TeeReader(out, &said)); lines.Scan() && !strings.Contains(lines.Text(), until); {
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	assert.Equal(t, 130, cmd.ProcessState.ExitCode(), "as a Java process ends that is interrupted")
	return said.String()
}
