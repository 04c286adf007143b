package commitlog

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/vfs"
	"barnabas/integration/lane"
)

// copyOut writes the files of a directory of a CrashFS to the real disk.
func copyOut(t *testing.T, fs vfs.FS, from, to string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(to, 0o755))
	entries, err := fs.ReadDir(from)
	require.NoError(t, err)
	for _, e := range entries {
		f, err := fs.OpenFile(filepath.Join(from, e.Name()), os.O_RDONLY, 0)
		require.NoError(t, err)
		data, err := vfs.NewRange(f, 0, f.Size(), nil).ReadAll()
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, os.WriteFile(filepath.Join(to, e.Name()), data, 0o644))
	}
}

// A sample of the recovered directories is shown to Kafka's own tool: it finds no byte that is not a batch, no checksum that
// is wrong, no index entry that leads elsewhere.
func TestKafkasDumpToolFindsNoFaultInWhatWasRecovered(t *testing.T) {
	java, jars := lane.Java(t), lane.KafkaJars(t, "3.9.1")
	dir := t.TempDir()
	var names []string
	for seed := uint64(1); seed <= 6; seed++ {
		s := &crashScript{t: t, rng: rand.New(rand.NewPCG(seed, 9)), fs: vfs.NewCrashFS(), clock: newClock(), next: map[int64]int32{}, hwLags: true}
		s.boot()
		s.done("create")
		for range 80 {
			s.step()
		}
		for k, a := range vfs.Adversaries {
			c := &crashCase{script: s, seed: seed, cut: s.rng.IntN(s.fs.Ops() + 1), adversary: a}
			clk := &clock{at: s.clock.at}
			disk := s.fs.Image(c.cut, a, seed)
			m, l := c.recovered(disk, clk)
			if l == nil {
				continue
			}
			require.NoError(t, m.Close())
			to := filepath.Join(dir, string(rune('a'+seed))+string(rune('a'+k)))
			copyOut(t, disk, l.Dir(), to)
			for _, pattern := range []string{"*.log", "*.index", "*.timeindex", "*.snapshot", "*.txnindex"} {
				found, err := filepath.Glob(filepath.Join(to, pattern))
				require.NoError(t, err)
				names = append(names, found...)
			}
		}
	}
	require.Greater(t, len(names), 200)
	cmd := exec.Command(java, "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(jars, "*"), "kafka.tools.DumpLogSegments", "--files", strings.Join(names, ","))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s", &stderr)
	for _, line := range strings.Split(stderr.String(), "\n") {
		require.True(t, line == "" || strings.HasPrefix(line, "log4j:"), line)
	}
	require.NotContains(t, stdout.String(), "invalid bytes")
	require.NotContains(t, stdout.String(), "isvalid: false")
	require.Equal(t, len(names), strings.Count(stdout.String(), "Dumping "))
}
