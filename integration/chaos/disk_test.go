package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
)

// The only log directory of a broker runs full. The broker says so and ends, with an exit code that a supervisor sees; the others go on; with room again it comes back and holds what the
// others do.
func TestH46_ABrokerWithoutAnyLogDirectoryEnds(t *testing.T) {
	w := newWorld(t, 3, 6, 4)
	lane.Need(t, w.small != nil, "a small disk, which root can mount")
	load := w.load(t)
	load.Progress(t, perRound, "with room")
	full := w.fillDisk()
	full.inject(t)
	require.NotZero(t, w.small.ExitCode(t, 30*time.Second))
	require.Contains(t, w.small.LogTail(4000), "every log directory has failed")
	load.Progress(t, perRound, "without the broker")
	full.heal(t)
	w.converge(t, []fault{full})
	w.judge(t, load)
}
