package hostile

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	lookEvery = 20 * time.Millisecond
	settle    = time.Minute // within which descriptors of attackers are gone
)

// process watches a broker's memory and descriptors through /proc. Without a process id, or without /proc, it sees
// nothing and demands nothing.
type process struct {
	pid         int
	start, peak int64
	descriptors int
	done        chan struct{}
	watcher     sync.WaitGroup
	stop        sync.Once
}

// watch begins to watch, and ends with the test.
func watch(t *testing.T, pid int) *process {
	p := &process{pid: pid, done: make(chan struct{})}
	p.start = p.resident()
	p.peak = p.start
	p.descriptors = p.openFiles()
	p.watcher.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-p.done:
				return
			case <-tick.C:
				p.peak = max(p.peak, p.resident())
			}
		}
	})
	t.Cleanup(p.end)
	return p
}

func (p *process) end() {
	p.stop.Do(func() { close(p.done) })
	p.watcher.Wait()
}

// memory ends the watching and gives the resident bytes before it, and the most that were seen.
func (p *process) memory() (start, peak int64) {
	p.end()
	return p.start, p.peak
}

func (p *process) resident() int64 {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return 0
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

func (p *process) openFiles() int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid))
	if err != nil {
		return 0
	}
	return len(entries)
}

// requireDescriptorsBack waits until the attackers' descriptors are closed.
func (p *process) requireDescriptorsBack(t *testing.T) {
	t.Helper()
	if p.pid == 0 {
		return
	}
	require.Eventually(t, func() bool { return p.openFiles() <= p.descriptors+5 }, settle, 50*time.Millisecond,
		"descriptors stay open: %d before the storm", p.descriptors)
}
