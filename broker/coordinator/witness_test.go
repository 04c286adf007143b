package coordinator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

// doubtful is a topic that may be led by others.
type doubtful struct {
	*memory
	leads   map[int32]bool
	confirm chan bool // what Confirm answers
}

func (d *doubtful) Began(p int32)      { d.leads[p] = true }
func (d *doubtful) Ended(p int32)      { delete(d.leads, p) }
func (d *doubtful) Leads(p int32) bool { return d.leads[p] }
func (d *doubtful) Confirm(ctx context.Context, _ int32) bool {
	select {
	case sure := <-d.confirm:
		return sure
	case <-ctx.Done():
		return false
	}
}

func TestWhoMayBeDeposedAnswersNothingByHeart(t *testing.T) {
	d := &doubtful{memory: newMemory(), leads: map[int32]bool{}, confirm: make(chan bool)}
	sh := newShell(t, d.memory, nil)
	sh.topic = d
	ask := func() chan error {
		answer := make(chan error, 1)
		sh.DoCertainly(nameOn(sh, 0), func(*sums, int64) { answer <- nil }, func(err error) { answer <- err })
		return answer
	}
	require.ErrorIs(t, <-ask(), kerr.NotCoordinator)
	sh.Lead(0, 1)
	awaitLoaded(t, sh)
	require.NoError(t, <-ask(), "nobody else can lead")

	d.leads[0] = false
	answer := ask()
	d.confirm <- true
	require.NoError(t, <-answer)
	answer = ask()
	d.confirm <- false
	require.ErrorIs(t, <-answer, kerr.NotCoordinator)
	sh.Lead(0, 2)
	require.NoError(t, <-ask(), "it was made leader anew")

	d.leads[0] = false
	answer = ask()
	sh.Resign(0)
	require.ErrorIs(t, <-answer, kerr.NotCoordinator, "the wait ends with the leadership")
}
