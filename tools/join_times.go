package tools

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// joinTimes measures how long a member of a group waits for partitions: from the start, or from when it lost its last one, until it has some.
type joinTimes struct {
	mu          sync.Mutex
	began       time.Time
	held        int
	all         time.Duration
	unreported  time.Duration
	assignments int
}

func count(partitions map[string][]int32) (n int) {
	for _, ids := range partitions {
		n += len(ids)
	}
	return n
}

func (j *joinTimes) assigned(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held == 0 {
		waited := time.Since(j.began)
		j.all += waited
		j.unreported += waited
		j.began = time.Now()
	}
	j.held += count(partitions)
	j.assignments++
}

func (j *joinTimes) revoked(_ context.Context, client *kgo.Client, partitions map[string][]int32) {
	commitPrinted(client) // in place of what the client does where nobody listens
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held -= count(partitions); j.held == 0 {
		j.began = time.Now()
	}
}

func (j *joinTimes) total() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all
}

// since is the time since the last call.
func (j *joinTimes) since() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	waited := j.unreported
	j.unreported = 0
	return waited
}

func (j *joinTimes) rounds() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.assignments
}
