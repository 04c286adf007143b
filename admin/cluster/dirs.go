package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
)

// Dir is a log directory of a broker, with what lies in it, by partition.
type Dir struct {
	Path          string
	Err           error // out of use, or not to be told
	Total, Usable int64 // bytes of the volume; -1 where the broker does not tell (before 3.3)
	Replicas      []DirReplica
}

// DirReplica is a replica's log in a directory.
type DirReplica struct {
	Partition plan.Partition
	Size      int64 // bytes
	OffsetLag int64 // behind the high watermark, or, of a future replica, behind the current one
	Future    bool  // is to replace the replica in another directory of the same broker
}

// Dirs asks a broker for its log directories, in its order, and what they hold of some partitions by topic; nil is of all.
func (c *Cluster) Dirs(ctx context.Context, broker int32, partitions map[string][]int32) ([]Dir, error) {
	req := kmsg.NewPtrDescribeLogDirsRequest()
	for topic, ids := range partitions {
		t := kmsg.NewDescribeLogDirsRequestTopic()
		t.Topic, t.Partitions = topic, ids
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, c.client.Broker(int(broker)))
	if err != nil {
		return nil, err
	}
	if err := Answered(resp.ErrorCode, nil); err != nil {
		return nil, err
	}
	var dirs []Dir
	for _, d := range resp.Dirs {
		dir := Dir{Path: d.Dir, Err: Answered(d.ErrorCode, nil), Total: -1, Usable: -1}
		if resp.Version >= 4 {
			dir.Total, dir.Usable = d.TotalBytes, d.UsableBytes
		}
		for _, t := range d.Topics {
			for _, p := range t.Partitions {
				dir.Replicas = append(dir.Replicas, DirReplica{plan.Partition{Topic: t.Topic, ID: p.Partition}, p.Size, p.OffsetLag, p.IsFuture})
			}
		}
		slices.SortFunc(dir.Replicas, func(a, b DirReplica) int { return a.Partition.Compare(b.Partition) })
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// AllDirs asks all registered brokers for their log directories; a broker that does not answer is an error, since what it holds would be missing.
func (c *Cluster) AllDirs(ctx context.Context) (map[int32][]Dir, error) {
	brokers, _, err := c.Brokers(ctx)
	if err != nil {
		return nil, err
	}
	var ids []int32
	for _, b := range brokers {
		ids = append(ids, b.ID)
	}
	dirs, failures := each(ctx, ids, func(ctx context.Context, id int32) ([]Dir, error) { return c.Dirs(ctx, id, nil) })
	for _, id := range slices.Sorted(maps.Keys(failures)) {
		return nil, fmt.Errorf("the log directories of broker %d: %w", id, failures[id])
	}
	return dirs, nil
}

// TopicSizes are the bytes that the replicas of topics take on all brokers together.
func (c *Cluster) TopicSizes(ctx context.Context) (map[string]int64, error) {
	all, err := c.AllDirs(ctx)
	sizes := map[string]int64{}
	for _, dirs := range all {
		for _, d := range dirs {
			for _, r := range d.Replicas {
				sizes[r.Partition.Topic] += r.Size
			}
		}
	}
	return sizes, err
}
