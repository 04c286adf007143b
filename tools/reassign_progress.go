package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"barnabas/admin/cluster"
)

// progressPause is between two looks at a reassignment, progressEvery between two lines about it.
const (
	progressPause = 500 * time.Millisecond
	progressEvery = 2 * time.Second
)

// waitAndVerify waits until nothing of the file moves any more, then shows where everything is and removes the throttles. Interrupted, it leaves the throttle to what still moves and says so.
func (r reassigner) waitAndVerify(asked reassignmentFile, preserveThrottles bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := r.wait(ctx, asked); err != nil {
		return err
	}
	verified := r.verifyNow(asked, preserveThrottles)
	active, err := r.door.active()
	if err != nil || len(active) == 0 || preserveThrottles {
		return errors.Join(verified, err)
	}
	// What others have started still runs, and kept the verification from removing throttles.
	fmt.Fprintln(r.f.stderr, "Other reassignments are still running; throttles of the topics and brokers that they concern are left to them.")
	return errors.Join(verified, r.clear(asked, active))
}

var errInterrupted = &terse{"Interrupted: the reassignment goes on. Run --verify --wait to see its end and to have its throttle removed."}

func (r reassigner) wait(ctx context.Context, asked reassignmentFile) error {
	tick := time.NewTicker(progressPause)
	defer tick.Stop()
	var pace cluster.Pace
	var told time.Time
	for {
		left, err := r.left(asked)
		if err != nil {
			return err
		}
		now := time.Now()
		pace.See(now, left.bytes)
		if left.partitions == 0 && left.dirMoves == 0 {
			return nil
		}
		if now.Sub(told) >= progressEvery {
			told = now
			fmt.Fprintln(r.f.stderr, left.line(&pace))
		}
		select {
		case <-ctx.Done():
			return errInterrupted
		case <-tick.C:
		}
	}
}

// remaining is what is left to be done.
type remaining struct {
	partitions, dirMoves int
	bytes                int64 // -1: not known
}

// left asks the cluster what still moves. What others move counts too while the throttle holds it back, but only the file's partitions are waited for.
func (r reassigner) left(asked reassignmentFile) (remaining, error) {
	active, err := r.door.active()
	if err != nil {
		return remaining{}, err
	}
	moves := cluster.Moves{}
	for _, p := range asked.partitions {
		if m, running := active[p]; running {
			moves[p] = m
		}
	}
	out := remaining{partitions: len(moves), bytes: -1}
	door, ok := r.door.(directories)
	if !ok || len(moves)+len(asked.dirs) == 0 {
		return out, nil
	}
	stored, err := door.stored(asked.targets().Partitions())
	if err != nil {
		return out, nil // a broker is away for now
	}
	out.bytes, out.dirMoves = cluster.DirBytesLeft(stored, func(r cluster.Replica) bool { _, asked := asked.dirs[r]; return asked })
	for _, bytes := range cluster.BytesLeft(stored, moves) {
		out.bytes += bytes
	}
	return out, nil
}

func (l remaining) line(pace *cluster.Pace) string {
	text := fmt.Sprintf("%d partition%s moving", l.partitions, plural(l.partitions))
	if l.dirMoves > 0 {
		text += fmt.Sprintf(", %d between directories", l.dirMoves)
	}
	if l.bytes < 0 {
		return text
	}
	text += fmt.Sprintf(", %s left", cluster.ByteCount(l.bytes))
	if end, known := pace.Remaining(); known {
		text += fmt.Sprintf(", %s/s, about %s to go", cluster.ByteCount(int64(pace.Rate())), end)
	}
	return text
}
