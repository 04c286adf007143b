package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
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
	var history []observation
	var told time.Time
	for {
		left, err := r.left(asked)
		if err != nil {
			return err
		}
		now := time.Now()
		history = remember(history, observation{now, left.bytes})
		if left.partitions == 0 && left.dirMoves == 0 {
			return nil
		}
		if now.Sub(told) >= progressEvery {
			told = now
			fmt.Fprintln(r.f.stderr, left.line(rateOf(history)))
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
	moves := map[plan.Partition]moving{}
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
	out.bytes, out.dirMoves = bytesLeft(stored, moves, asked.dirs)
	return out, nil
}

// bytesLeft compares what new replicas have with what the largest of the old ones has, and copies in other directories with their originals.
func bytesLeft(stored []storedReplica, moves map[plan.Partition]moving, dirs map[replicaOn]string) (bytes int64, dirMoves int) {
	current, future := map[replicaOn]int64{}, map[replicaOn]int64{}
	full := map[plan.Partition]int64{}
	for _, s := range stored {
		if s.future {
			future[s.replicaOn] = s.size
			continue
		}
		current[s.replicaOn] = s.size
		if !slices.Contains(moves[s.partition].adding, s.broker) {
			full[s.partition] = max(full[s.partition], s.size)
		}
	}
	for p, m := range moves {
		for _, id := range m.adding {
			bytes += max(0, full[p]-current[replicaOn{p, id}])
		}
	}
	for replica := range dirs {
		if size, moving := future[replica]; moving {
			dirMoves++
			bytes += max(0, current[replica]-size)
		}
	}
	return bytes, dirMoves
}

// observation is how much was left at some time.
type observation struct {
	at    time.Time
	bytes int64
}

// rateWindow is over how long a rate is measured: long enough to even out single fetches, short enough to follow a change of the throttle.
const rateWindow = 20 * time.Second

func remember(history []observation, o observation) []observation {
	if o.bytes < 0 {
		return history
	}
	history = append(history, o)
	for len(history) > 2 && o.at.Sub(history[0].at) > rateWindow {
		history = history[1:]
	}
	return history
}

// rateOf is how many bytes a second are copied; 0 when that cannot be said yet.
func rateOf(history []observation) float64 {
	if len(history) < 2 {
		return 0
	}
	first, last := history[0], history[len(history)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 || first.bytes <= last.bytes {
		return 0
	}
	return float64(first.bytes-last.bytes) / seconds
}

func (l remaining) line(rate float64) string {
	text := fmt.Sprintf("%d partition%s moving", l.partitions, plural(l.partitions))
	if l.dirMoves > 0 {
		text += fmt.Sprintf(", %d between directories", l.dirMoves)
	}
	if l.bytes < 0 {
		return text
	}
	text += fmt.Sprintf(", %s left", cluster.ByteCount(l.bytes))
	if rate > 0 {
		end := time.Duration(float64(l.bytes) / rate * float64(time.Second)).Round(time.Second)
		text += fmt.Sprintf(", %s/s, about %s to go", cluster.ByteCount(int64(rate)), end)
	}
	return text
}
