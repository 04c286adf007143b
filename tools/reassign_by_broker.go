package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// reassignmentByBroker asks brokers, as --bootstrap-server wants it (KIP-455).
type reassignmentByBroker struct {
	f      face
	client *kgo.Client
}

func (d *reassignmentByBroker) close() { d.client.Close() }

func (d *reassignmentByBroker) brokers() ([]plan.Broker, error) {
	alive, _, err := cluster.New(d.client).Brokers(context.Background())
	var list []plan.Broker
	for _, b := range alive {
		list = append(list, plan.Broker{ID: b.ID, Rack: b.Rack})
	}
	return list, err
}

func (d *reassignmentByBroker) replicas(topics []string) (plan.Assignment, map[string]error, error) {
	return cluster.New(d.client).Replicas(context.Background(), topics)
}

func (d *reassignmentByBroker) active() (cluster.Moves, error) {
	return cluster.New(d.client).Moves(context.Background())
}

func (d *reassignmentByBroker) start(targets plan.Assignment) (map[plan.Partition]error, error) {
	return cluster.New(d.client).Reassign(context.Background(), targets.Partitions(), targets)
}

func (d *reassignmentByBroker) cancelMoves(partitions []plan.Partition) (map[plan.Partition]error, error) {
	return cluster.New(d.client).Reassign(context.Background(), partitions, nil)
}

func (d *reassignmentByBroker) setThrottledReplicas(throttles map[string]cluster.ThrottledReplicas) error {
	return cluster.New(d.client).SetThrottledReplicas(context.Background(), throttles)
}

func (d *reassignmentByBroker) setRates(brokers []int32, rates map[string]string) (unreachable []int32, err error) {
	return cluster.New(d.client).SetRates(context.Background(), brokers, rates)
}

func (d *reassignmentByBroker) stored(partitions []plan.Partition) ([]cluster.StoredReplica, error) {
	return cluster.New(d.client).Stored(context.Background(), partitions)
}

func (d *reassignmentByBroker) moveTo(dirs map[cluster.Replica]string) ([]cluster.Replica, error) {
	byBroker := map[int32]map[string]map[string][]int32{} // then by directory and topic
	for r, dir := range dirs {
		if byBroker[r.Broker] == nil {
			byBroker[r.Broker] = map[string]map[string][]int32{}
		}
		if byBroker[r.Broker][dir] == nil {
			byBroker[r.Broker][dir] = map[string][]int32{}
		}
		byBroker[r.Broker][dir][r.Partition.Topic] = append(byBroker[r.Broker][dir][r.Partition.Topic], r.Partition.ID)
	}
	var taken []cluster.Replica
	for _, id := range sortedKeys(byBroker) {
		req := kmsg.NewPtrAlterReplicaLogDirsRequest()
		for _, dir := range sortedKeys(byBroker[id]) {
			rd := kmsg.NewAlterReplicaLogDirsRequestDir()
			rd.Dir = dir
			for _, topic := range sortedKeys(byBroker[id][dir]) {
				t := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
				t.Topic, t.Partitions = topic, byBroker[id][dir][topic]
				rd.Topics = append(rd.Topics, t)
			}
			req.Dirs = append(req.Dirs, rd)
		}
		resp, err := req.RequestWith(context.Background(), d.client.Broker(int(id)))
		if err != nil {
			return nil, fmt.Errorf("moving replicas between directories of broker %d: %w", id, err)
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				r := cluster.Replica{Partition: plan.Partition{Topic: t.Topic, ID: p.Partition}, Broker: id}
				switch err := answered(p.ErrorCode, nil); {
				case err == nil:
					taken = append(taken, r)
				case errors.Is(err, kerr.ReplicaNotAvailable): // it comes with the reassignment
				default:
					return nil, &commandFailed{fmt.Sprintf("Failed to alter dir for %v: %s", r, err)}
				}
			}
		}
	}
	slices.SortFunc(taken, cluster.Replica.Compare)
	return taken, nil
}
