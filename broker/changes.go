package broker

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"barnabas/zkstate"
)

const (
	// changeKept is how long a numbered notification stays, as in Kafka: every broker has seen it by then, or reads everything anew.
	changeKept = 15 * time.Minute
	// removedAtOnce bounds how many old ones are looked for each time.
	removedAtOnce = 100
)

// changes reads the numbered notifications below a directory, each once.
type changes struct {
	zk   *zkstate.Client
	dir  string
	kept time.Duration
	last string // newest one seen
}

func newChanges(zk *zkstate.Client, dir string) *changes {
	return &changes{zk: zk, dir: dir, kept: changeKept}
}

// unseen returns what the notifications say that came since the last call, in their order, leaving the watch for the next. It removes old ones. It fails only with the session, after which
// whoever follows reads everything.
func (c *changes) unseen(ctx context.Context) ([][]byte, error) {
	listed, err := c.zk.One(ctx, zkstate.Children(c.dir).Watched())
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(slices.Values(listed.Children))
	at, seen := slices.BinarySearch(names, c.last)
	if seen {
		at++
	}
	reads := make([]zkstate.Op, 0, len(names)-at)
	for _, name := range names[at:] {
		reads = append(reads, zkstate.Get(path.Join(c.dir, name)))
	}
	results, err := c.zk.Do(ctx, reads)
	if err != nil {
		return nil, err
	}
	var news [][]byte
	for _, r := range results {
		if errors.Is(r.Err, zkstate.ErrNoNode) {
			continue // removed as old by another broker
		}
		if r.Err != nil {
			return nil, r.Err
		}
		news = append(news, r.Data)
	}
	if len(names) > at {
		c.last = names[len(names)-1]
	}
	return news, c.removeOld(ctx, names[:min(len(names), removedAtOnce)])
}

func (c *changes) removeOld(ctx context.Context, names []string) error {
	var looks, removals []zkstate.Op
	for _, name := range names {
		looks = append(looks, zkstate.Exists(path.Join(c.dir, name)))
	}
	results, err := c.zk.Do(ctx, looks)
	if err != nil {
		return err
	}
	for i, r := range results {
		if r.Err == nil && time.Since(time.UnixMilli(r.Stat.Ctime)) > c.kept {
			removals = append(removals, zkstate.Delete(looks[i].Path, zkstate.AnyVersion))
		}
	}
	_, err = c.zk.Do(ctx, removals) // who else removes them is as good
	return err
}
