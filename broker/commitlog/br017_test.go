package commitlog

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/vfs"
)

// eachFile calls do for every file of a data directory with this suffix.
func eachFile(t testing.TB, dir, suffix string, do func(path string)) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"+suffix))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, path := range found {
		do(path)
	}
}

func bothIndexes(t testing.TB, dir string, do func(path string)) {
	eachFile(t, dir, indexSuffix, do)
	eachFile(t, dir, timeSuffix, do)
}

func appendTo(t testing.TB, path string, data []byte) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestBR017 opens a directory that Kafka closed, with every kind of index that an accident can leave, with and without the
// marker of a clean shutdown. Offsets and times are found as before; closed again, the indexes are what Verify wants.
func TestBR017IndexesThatAreMissingTornZeroedOrForeign(t *testing.T) {
	cases := []struct {
		name   string
		damage func(t *testing.T, dir string)
		cut    string // partition whose end is gone
	}{
		{name: "none", damage: func(*testing.T, string) {}},
		{name: "zero-filled", damage: func(t *testing.T, dir string) {
			bothIndexes(t, dir, func(path string) { require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o644)) })
		}},
		{name: "grown by zeros", damage: func(t *testing.T, dir string) {
			bothIndexes(t, dir, func(path string) { appendTo(t, path, make([]byte, 9600)) })
		}},
		{name: "three bytes", damage: func(t *testing.T, dir string) {
			bothIndexes(t, dir, func(path string) { require.NoError(t, os.WriteFile(path, []byte{1, 2, 3}, 0o644)) })
		}},
		{name: "deleted", damage: func(t *testing.T, dir string) {
			bothIndexes(t, dir, func(path string) { require.NoError(t, os.Remove(path)) })
		}},
		{name: "random", damage: func(t *testing.T, dir string) {
			rng := rand.New(rand.NewPCG(1, 1))
			bothIndexes(t, dir, func(path string) {
				junk := make([]byte, 240)
				for i := range junk {
					junk[i] = byte(rng.Uint32())
				}
				require.NoError(t, os.WriteFile(path, junk, 0o644))
			})
		}},
		{name: "leftovers", damage: func(t *testing.T, dir string) {
			for _, name := range []string{"00000000000000000000.log.cleaned", "00000000000000000005.index.deleted",
				"00000000000000000100.log.swap", "00000000000000000700.timeindex", "leader-epoch-checkpoint.tmp"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "txn-0", name), []byte("left over"), 0o644))
			}
		}},
		{name: "seven bytes off the end", damage: func(t *testing.T, dir string) {
			path := filepath.Join(dir, "txn-0", fileName(388, logSuffix))
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(path, info.Size()-7))
		}, cut: "txn"},
		{name: "a hundred zeros at the end", damage: func(t *testing.T, dir string) {
			appendTo(t, filepath.Join(dir, "txn-0", fileName(388, logSuffix)), make([]byte, 100))
		}},
	}
	for _, c := range cases {
		for _, marker := range []bool{true, false} {
			t.Run(c.name+map[bool]string{true: ", marked clean", false: ", not marked"}[marker], func(t *testing.T) {
				dir, ref := unpack(t, "3.9.1-clean"), unpack(t, "3.9.1-clean")
				c.damage(t, dir)
				if !marker {
					require.NoError(t, os.Remove(filepath.Join(dir, cleanShutdownFile)))
				}
				m, want := openFixture(t, dir), openFixture(t, ref)
				for _, w := range want.All() {
					l := m.Get(w.TP())
					require.NotNil(t, l)
					require.NoError(t, l.Err())
					end := w.EndOffset()
					if w.TP().Topic == c.cut {
						require.Equal(t, end-1, l.EndOffset())
						end--
					}
					require.Equal(t, end, l.EndOffset(), w.TP())
					requireSameAnswers(t, w, l, end)
				}
				require.NoError(t, m.Close())
				for _, l := range m.All() {
					problems, err := Verify(vfs.OS, l.Dir())
					require.NoError(t, err)
					for _, p := range problems {
						// What lies below the recovery point is not looked at, and not rebuilt before it is asked for.
						require.True(t, strings.HasSuffix(p.File, indexSuffix) || strings.HasSuffix(p.File, timeSuffix) ||
							strings.Contains(p.Cause, "has no index"), "%s", p)
					}
				}
			})
		}
	}
}

// requireSameAnswers compares what two logs say about offsets and times below end.
func requireSameAnswers(t testing.TB, want, got *Log, end int64) {
	t.Helper()
	for offset := want.StartOffset(); offset < end; offset += 1 + (end-want.StartOffset())/40 {
		a, err := want.positionOf(offset)
		require.NoError(t, err)
		b, err := got.positionOf(offset)
		require.NoError(t, err)
		require.Equal(t, a, b, "%s offset %d", want.TP(), offset)
		_, ts, _, found, err := want.OffsetForTimestamp(0)
		require.NoError(t, err)
		if !found {
			continue
		}
		at := ts + (offset-want.StartOffset())*977
		wo, wt, _, wf, err := want.OffsetForTimestamp(at)
		require.NoError(t, err)
		o, ot, _, f, err := got.OffsetForTimestamp(at)
		require.NoError(t, err)
		if wo < end {
			require.Equal(t, []any{wo, wt, wf}, []any{o, ot, f}, "%s time %d", want.TP(), at)
		}
	}
}
