package api

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// DescribeLogDirs, key 35, versions 0 to 4.
//
//	2  flexible
//	3  error code of the whole
//	4  size of the volume, and what is left of it (KIP-827)
//
// A null list of topics is all of them, an empty list none. It runs on a
// worker: a volume is asked for its size.
func (d *Dispatcher) describeLogDirs(c *call, req *kmsg.DescribeLogDirsRequest) {
	if !d.mayCluster(c, kmsg.ACLOperationDescribe) {
		resp := kmsg.NewPtrDescribeLogDirsResponse()
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		c.answer(resp)
		return
	}
	wanted := logDirFilter(req)
	d.work(c, func(context.Context) {
		resp := kmsg.NewPtrDescribeLogDirsResponse()
		for _, dir := range d.deps.Replicas.LogDirs() {
			resp.Dirs = append(resp.Dirs, logDir(&dir, wanted))
		}
		c.answer(resp)
	})
}

func logDirFilter(req *kmsg.DescribeLogDirsRequest) func(commitlog.TopicPartition) bool {
	if req.Topics == nil {
		return func(commitlog.TopicPartition) bool { return true }
	}
	wanted := make(map[commitlog.TopicPartition]struct{})
	for i := range req.Topics {
		for _, id := range req.Topics[i].Partitions {
			wanted[commitlog.TopicPartition{Topic: req.Topics[i].Topic, Partition: id}] = struct{}{}
		}
	}
	return func(tp commitlog.TopicPartition) bool {
		_, yes := wanted[tp]
		return yes
	}
}

func logDir(from *partition.LogDirDescription, wanted func(commitlog.TopicPartition) bool) kmsg.DescribeLogDirsResponseDir {
	to := kmsg.NewDescribeLogDirsResponseDir()
	to.Dir, to.TotalBytes, to.UsableBytes = from.Path, from.Total, from.Usable
	if from.Err != nil {
		to.ErrorCode, _ = code(from.Err)
		to.TotalBytes, to.UsableBytes = -1, -1
		return to
	}
	parts := slices.SortedFunc(slices.Values(from.Partitions), func(a, b partition.LogDirPartition) int {
		return cmp.Or(cmp.Compare(a.TP.Topic, b.TP.Topic), cmp.Compare(a.TP.Partition, b.TP.Partition))
	})
	for _, p := range parts {
		if !wanted(p.TP) {
			continue
		}
		if n := len(to.Topics); n == 0 || to.Topics[n-1].Topic != p.TP.Topic {
			t := kmsg.NewDescribeLogDirsResponseDirTopic()
			t.Topic = p.TP.Topic
			to.Topics = append(to.Topics, t)
		}
		row := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		row.Partition, row.Size, row.OffsetLag, row.IsFuture = p.TP.Partition, p.Size, p.OffsetLag, p.IsFuture
		t := &to.Topics[len(to.Topics)-1]
		t.Partitions = append(t.Partitions, row)
	}
	return to
}
