package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/zkstate"
)

// reassignmentByZooKeeper works on ZooKeeper directly, as tools did before brokers had an API for it: the controller does what a node asks for and deletes the node when it is done.
type reassignmentByZooKeeper struct{ zk *zkstate.Client }

func (d *reassignmentByZooKeeper) close() { d.zk.Close() }

func (d *reassignmentByZooKeeper) brokers() ([]plan.Broker, error) {
	ctx := context.Background()
	r, err := d.zk.One(ctx, zkstate.Children(zkstate.BrokerIDsPath))
	if errors.Is(err, zkstate.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []plan.Broker
	for _, name := range r.Children {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			continue // not a broker's
		}
		node, err := d.zk.One(ctx, zkstate.Get(zkstate.BrokerIDPath(int32(id))))
		if errors.Is(err, zkstate.ErrNoNode) {
			continue // gone since
		}
		if err != nil {
			return nil, err
		}
		registration, err := zkstate.DecodeBroker(int32(id), node.Data)
		if err != nil {
			return nil, err
		}
		b := plan.Broker{ID: int32(id)}
		if registration.Rack != nil {
			b.Rack = *registration.Rack
		}
		list = append(list, b)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].ID < list[j].ID })
	return list, nil
}

func (d *reassignmentByZooKeeper) replicas(topics []string) (plan.Assignment, map[string]error, error) {
	found, failed := plan.Assignment{}, map[string]error{}
	for _, topic := range topics {
		r, err := d.zk.One(context.Background(), zkstate.Get(zkstate.TopicPath(topic)))
		if errors.Is(err, zkstate.ErrNoNode) {
			failed[topic] = err
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		assigned, err := zkstate.DecodeTopicAssignment(r.Data)
		if err != nil {
			return nil, nil, err
		}
		for id, p := range assigned.Partitions {
			found[plan.Partition{Topic: topic, ID: id}] = p.Replicas
		}
	}
	return found, failed, nil
}

// active knows only of what was asked for through this door.
func (d *reassignmentByZooKeeper) active() (cluster.Moves, error) {
	r, err := d.zk.One(context.Background(), zkstate.Get(zkstate.ReassignPartitionsPath))
	if errors.Is(err, zkstate.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := zkstate.DecodeReassignments(r.Data)
	out := cluster.Moves{}
	for _, asked := range list {
		out[plan.Partition{Topic: asked.Topic, ID: asked.Partition}] = cluster.Move{Replicas: asked.Replicas}
	}
	return out, err
}

func (d *reassignmentByZooKeeper) start(targets plan.Assignment) (map[plan.Partition]error, error) {
	var list []zkstate.Reassignment
	for _, p := range targets.Partitions() {
		list = append(list, zkstate.Reassignment{TopicPartition: zkstate.TopicPartition{Topic: p.Topic, Partition: p.ID}, Replicas: targets[p]})
	}
	_, err := d.zk.One(context.Background(), zkstate.Create(zkstate.ReassignPartitionsPath, zkstate.EncodeReassignments(list)))
	if errors.Is(err, zkstate.ErrNodeExists) {
		return nil, &terse{alreadyReassigning}
	}
	return nil, err
}

func (d *reassignmentByZooKeeper) setThrottledReplicas(throttles map[string]cluster.ThrottledReplicas) error {
	for _, topic := range sortedKeys(throttles) {
		t := throttles[topic]
		if err := d.edit(zkstate.TopicEntity, topic, map[string]string{leaderThrottleReplicas: t.Leaders, followerThrottleReplicas: t.Followers}); err != nil {
			return err
		}
	}
	return nil
}

func (d *reassignmentByZooKeeper) setRates(brokers []int32, rates map[string]string) (unreachable []int32, err error) {
	for _, id := range brokers {
		if err := d.edit(zkstate.BrokerEntity, strconv.Itoa(int(id)), rates); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// edit sets and takes back settings of an entity, and tells nobody when that changes nothing.
func (d *reassignmentByZooKeeper) edit(t zkstate.EntityType, name string, settings map[string]string) error {
	ctx := context.Background()
	values, order := zkstate.EntityConfig{}, []string(nil)
	r, err := d.zk.One(ctx, zkstate.Get(zkstate.EntityPath(t, name)))
	switch {
	case errors.Is(err, zkstate.ErrNoNode):
	case err != nil:
		return err
	default:
		if values, err = zkstate.DecodeEntityConfig(r.Data); err != nil {
			return fmt.Errorf("settings of %s/%s: %w", t, name, err)
		}
		order = zkstate.KeyOrder(r.Data)
	}
	before := maps.Clone(values)
	for _, key := range sortedKeys(settings) {
		if settings[key] == "" {
			delete(values, key)
			continue
		}
		values[key], order = settings[key], append(order, key)
	}
	if maps.Equal(before, values) {
		return nil
	}
	return d.zk.SetEntityConfig(ctx, t, name, values, slices.Clip(order)...)
}
