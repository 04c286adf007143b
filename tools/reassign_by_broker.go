package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

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

func (d *reassignmentByBroker) active() (map[plan.Partition]moving, error) {
	moves, err := cluster.New(d.client).Moves(context.Background())
	if err != nil {
		return nil, err
	}
	list := map[plan.Partition]moving{}
	for p, m := range moves {
		list[p] = moving{m.Replicas, m.Adding, m.Removing}
	}
	return list, nil
}

func (d *reassignmentByBroker) start(targets plan.Assignment) (map[plan.Partition]error, error) {
	return cluster.New(d.client).Reassign(context.Background(), targets.Partitions(), targets)
}

func (d *reassignmentByBroker) cancelMoves(partitions []plan.Partition) (map[plan.Partition]error, error) {
	return cluster.New(d.client).Reassign(context.Background(), partitions, nil)
}

// change is one setting to set, or with an empty value to take back.
func change(key, value string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
	if value == "" {
		return cluster.Change(key, nil)
	}
	return cluster.Change(key, &value)
}

func (d *reassignmentByBroker) setThrottledReplicas(throttles map[string]throttledReplicas) error {
	var resources []kmsg.IncrementalAlterConfigsRequestResource
	for _, topic := range sortedKeys(throttles) {
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		r.Configs = append(r.Configs, change(leaderThrottleReplicas, throttles[topic].leaders), change(followerThrottleReplicas, throttles[topic].followers))
		resources = append(resources, r)
	}
	return cluster.New(d.client).AlterConfigs(context.Background(), false, resources...)
}

func (d *reassignmentByBroker) setRates(brokers []int32, rates map[string]string) (unreachable []int32, err error) {
	alive, err := d.brokers()
	if err != nil {
		return nil, err
	}
	var resources []kmsg.IncrementalAlterConfigsRequestResource
	for _, id := range brokers {
		if !slices.ContainsFunc(alive, func(b plan.Broker) bool { return b.ID == id }) {
			unreachable = append(unreachable, id) // only a broker itself takes its settings
			continue
		}
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(id))
		for _, key := range sortedKeys(rates) {
			r.Configs = append(r.Configs, change(key, rates[key]))
		}
		resources = append(resources, r)
	}
	return unreachable, cluster.New(d.client).AlterConfigs(context.Background(), false, resources...)
}

func (d *reassignmentByBroker) stored(partitions []plan.Partition) ([]storedReplica, error) {
	alive, err := d.brokers()
	if err != nil {
		return nil, err
	}
	byTopic := map[string][]int32{}
	for _, p := range partitions {
		byTopic[p.Topic] = append(byTopic[p.Topic], p.ID)
	}
	var list []storedReplica
	for _, b := range alive {
		dirs, err := cluster.New(d.client).Dirs(context.Background(), b.ID, byTopic)
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			if dir.Err != nil {
				continue // offline: what is in it is not found
			}
			for _, r := range dir.Replicas {
				list = append(list, storedReplica{replicaOn{r.Partition, b.ID}, dir.Path, r.Size, r.OffsetLag, r.Future})
			}
		}
	}
	return list, nil
}

func (d *reassignmentByBroker) moveTo(dirs map[replicaOn]string) ([]replicaOn, error) {
	byBroker := map[int32]map[string]map[string][]int32{} // then by directory and topic
	for r, dir := range dirs {
		if byBroker[r.broker] == nil {
			byBroker[r.broker] = map[string]map[string][]int32{}
		}
		if byBroker[r.broker][dir] == nil {
			byBroker[r.broker][dir] = map[string][]int32{}
		}
		byBroker[r.broker][dir][r.partition.Topic] = append(byBroker[r.broker][dir][r.partition.Topic], r.partition.ID)
	}
	var taken []replicaOn
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
				r := replicaOn{plan.Partition{Topic: t.Topic, ID: p.Partition}, id}
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
	slices.SortFunc(taken, compareReplicas)
	return taken, nil
}
