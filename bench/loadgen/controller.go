package main

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// depose takes the office from the controller, by deleting its node, and measures how long it takes until another was elected and has made a topic: it
// works on one thing after the other, so it has taken over the whole cluster then.
func depose() {
	conn, _, err := zk.Connect([]string{*ensemble}, time.Minute, zk.WithLogInfo(false))
	check(err)
	defer conn.Close()
	before, _, err := conn.Get("/controller")
	check(err)
	cl := client()
	defer cl.Close()
	check(cl.Ping(context.Background()))
	t0 := time.Now()
	check(conn.Delete("/controller", -1))
	var elected time.Duration
	for end := t0.Add(*dur); ; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			die("no controller has made a topic in %v", *dur)
		}
		now, _, err := conn.Get("/controller")
		if err != nil || bytes.Equal(now, before) {
			continue
		}
		if elected == 0 {
			elected = time.Since(t0)
		}
		if made(cl, nodeID(now)) {
			break
		}
	}
	out(map[string]any{"elected_s": elected.Seconds(), "failover_s": time.Since(t0).Seconds()})
}

// nodeID is the brokerid that the controller's node tells.
func nodeID(node []byte) int32 {
	_, rest, _ := bytes.Cut(node, []byte(`"brokerid":`))
	digits := rest[:len(rest)-len(bytes.TrimLeft(rest, "0123456789"))]
	id, err := strconv.Atoi(string(digits))
	check(err)
	return int32(id)
}

// made asks a broker for the topic and tells whether it is there.
func made(cl *kgo.Client, broker int32) bool {
	q := kmsg.NewPtrCreateTopicsRequest()
	q.TimeoutMillis = int32(dur.Milliseconds())
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = *topic, 1, 1
	q.Topics = append(q.Topics, t)
	resp, err := cl.Broker(int(broker)).Request(context.Background(), q)
	if err != nil {
		return false
	}
	err = kerr.ErrorForCode(resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode)
	return err == nil || err == kerr.TopicAlreadyExists
}
