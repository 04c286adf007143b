package broker

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"barnabas/zkstate"
)

// changeKept is how long a numbered notification stays before whoever reads the list next removes it: every broker has seen it by then, or reads everything anew.
const changeKept = 15 * time.Minute

// changes reads the numbered notifications below a directory, each once.
type changes struct {
	zk   *zkstate.Client
	dir  string
	last string // newest one seen
}

// unseen returns what the notifications say that came since the last call, in their order, leaving the watch for the next. It removes old ones.
func (c *changes) unseen(ctx context.Context) ([][]byte, error) {
	listed, err := c.zk.One(ctx, zkstate.Children(c.dir).Watched())
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(slices.Values(listed.Children))
	reads := make([]zkstate.Op, len(names))
	for i, name := range names {
		reads[i] = zkstate.Get(path.Join(c.dir, name))
	}
	results, err := c.zk.Do(ctx, reads)
	if err != nil {
		return nil, err
	}
	var news [][]byte
	var old []zkstate.Op
	for i, r := range results {
		if errors.Is(r.Err, zkstate.ErrNoNode) {
			continue // removed as old by another broker
		}
		if r.Err != nil {
			return nil, r.Err
		}
		if names[i] > c.last {
			c.last = names[i]
			news = append(news, r.Data)
		}
		if time.Since(time.UnixMilli(r.Stat.Ctime)) > changeKept {
			old = append(old, zkstate.Delete(reads[i].Path, zkstate.AnyVersion))
		}
	}
	if _, err := c.zk.Do(ctx, old); err != nil {
		return nil, err
	}
	return news, nil
}
