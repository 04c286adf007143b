package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topics made and moved, and waiting until a cluster has them as they were asked for.

func replicas() (r []int32) {
	for _, s := range strings.Split(*assign, ",") {
		i, err := strconv.Atoi(s)
		check(err)
		r = append(r, int32(i))
	}
	return r
}

// create makes a topic and waits until every partition has a leader and a full ISR.
func create() {
	q := kmsg.NewPtrCreateTopicsRequest()
	q.TimeoutMillis = 120000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = *topic, int32(*parts), int16(*rf)
	if *assign != "" {
		t.NumPartitions, t.ReplicationFactor = -1, -1
		for i := 0; i < *parts; i++ {
			t.ReplicaAssignment = append(t.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: int32(i), Replicas: replicas()})
		}
		*rf = len(replicas())
	}
	for name, value := range settings() {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: name, Value: &value})
	}
	q.Topics = append(q.Topics, t)
	cl := client(kgo.RequestTimeoutOverhead(150 * time.Second))
	defer cl.Close()
	t0 := time.Now()
	p, err := q.RequestWith(context.Background(), cl)
	check(err)
	check(kerr.ErrorForCode(p.Topics[0].ErrorCode))
	answered := time.Since(t0)
	m := await()
	m["create_s"], m["ready_s"] = answered.Seconds(), time.Since(t0).Seconds()
	out(m)
}

// await polls Metadata until the cluster is as asked for, in the view of every broker.
func await() map[string]any {
	for end := time.Now().Add(*dur); time.Now().Before(end); time.Sleep(3 * time.Millisecond) {
		m, err := metadata(*addr, *topic)
		if err != nil || len(m.Brokers) < *nb || m.ControllerID < 0 || !whole(m) {
			continue
		}
		ok, led := true, map[int32]int{}
		for _, b := range m.Brokers {
			if a := fmt.Sprintf("%s:%d", b.Host, b.Port); ok && *topic != "" && a != *addr {
				m2, err := metadata(a, *topic)
				ok = err == nil && whole(m2)
			}
		}
		if ok && *probe {
			l := leaders(*addr, *topic)
			for _, i := range []int{0, len(l) / 2, len(l) - 1} {
				if c, err := dial(l[i]); err != nil || c.send(produceReq(*topic, int32(i), 1, batch(1, 10, "none", 1))) != nil || c.produced() != nil {
					ok = false
				} else {
					c.Close()
				}
			}
		}
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				led[p.Leader]++
			}
		}
		if ok {
			return map[string]any{"wait_s": time.Since(start).Seconds(), "controller": m.ControllerID, "leads": led}
		}
	}
	die("cluster not ready in %v", *dur)
	return nil
}

// whole tells whether each partition of the topic has a leader and a full ISR.
func whole(m *kmsg.MetadataResponse) bool {
	if *topic == "" {
		return true
	}
	ok := len(m.Topics) == 1 && m.Topics[0].ErrorCode == 0 && len(m.Topics[0].Partitions) == *parts
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			ok = ok && p.Leader >= 0 && p.ErrorCode == 0 && len(p.ISR) >= *rf
		}
	}
	return ok
}

// reassign moves every partition of the topic to -assign and waits until Metadata shows exactly those replicas, all
// in the ISR. (An empty ListPartitionReassignments is no proof: asked with no topics it is empty at once.)
func reassign() {
	adm := kadm.NewClient(client())
	var q kadm.AlterPartitionAssignmentsReq
	want := replicas()
	for i := 0; i < *parts; i++ {
		q.Assign(*topic, int32(i), want)
	}
	t0 := time.Now()
	p, err := adm.AlterPartitionAssignments(context.Background(), q)
	check(err)
	check(p.Error())
	for end := t0.Add(*dur); ; time.Sleep(20 * time.Millisecond) {
		m, err := metadata(*addr, *topic)
		check(err)
		done := 0
		for _, p := range m.Topics[0].Partitions {
			if fmt.Sprint(p.Replicas) == fmt.Sprint(want) && len(p.ISR) == len(want) && p.ISR[0] == want[0] && p.Leader == want[0] {
				done++
			}
		}
		if done == *parts {
			break
		}
		if time.Now().After(end) {
			die("reassignment: %d of %d partitions done in %v", done, *parts, *dur)
		}
	}
	out(map[string]any{"seconds": time.Since(t0).Seconds()})
}
