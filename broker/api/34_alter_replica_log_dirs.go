package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// AlterReplicaLogDirs, key 34, versions 0 to 2 (KIP-113).
//
//	2  flexible
//
// It says in which of this broker's log directories replicas should be. The answer
// comes when the moves have begun; DescribeLogDirs shows how far they are. A
// partition that is named under two directories is asked for in the one that
// comes last, as with Kafka. A topic whose name is too long for what Kafka calls a
// future log is moved all the same. It runs on a worker: a move makes files, and
// ending one waits for a piece of it.
func (d *Dispatcher) alterReplicaLogDirs(c *call, req *kmsg.AlterReplicaLogDirsRequest) {
	changes := logDirChanges(req)
	if !d.mayCluster(c, kmsg.ACLOperationAlter) {
		results := make([]partition.PartitionError, len(changes))
		for i := range changes {
			results[i] = partition.PartitionError{TP: changes[i].TP, Err: kerr.ClusterAuthorizationFailed}
		}
		c.answer(alteredLogDirs(results))
		return
	}
	d.work(c, func(context.Context) { c.answer(alteredLogDirs(d.deps.Replicas.AlterLogDirs(changes))) })
}

func alteredLogDirs(results []partition.PartitionError) *kmsg.AlterReplicaLogDirsResponse {
	resp := kmsg.NewPtrAlterReplicaLogDirsResponse()
	at := map[string]int{}
	for _, r := range results {
		i, ok := at[r.TP.Topic]
		if !ok {
			i = len(resp.Topics)
			at[r.TP.Topic] = i
			t := kmsg.NewAlterReplicaLogDirsResponseTopic()
			t.Topic = r.TP.Topic
			resp.Topics = append(resp.Topics, t)
		}
		row := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
		row.Partition = r.TP.Partition
		row.ErrorCode, _ = code(r.Err)
		resp.Topics[i].Partitions = append(resp.Topics[i].Partitions, row)
	}
	return resp
}

func logDirChanges(req *kmsg.AlterReplicaLogDirsRequest) []partition.LogDirChange {
	var changes []partition.LogDirChange
	at := map[commitlog.TopicPartition]int{}
	for _, dir := range req.Dirs {
		for _, t := range dir.Topics {
			for _, id := range t.Partitions {
				tp := commitlog.TopicPartition{Topic: t.Topic, Partition: id}
				if i, again := at[tp]; again {
					changes[i].Dir = dir.Dir
					continue
				}
				at[tp] = len(changes)
				changes = append(changes, partition.LogDirChange{TP: tp, Dir: dir.Dir})
			}
		}
	}
	return changes
}
