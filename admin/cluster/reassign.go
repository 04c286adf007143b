package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"barnabas/admin/plan"
)

// RefusedError lists the partitions that the controller did not start to move, or whose move it did not end, and why.
type RefusedError struct{ Partitions map[plan.Partition]error }

func (e *RefusedError) Error() string {
	list := plan.Assignment{}
	for p := range e.Partitions {
		list[p] = nil
	}
	first := list.Partitions()[0]
	text := fmt.Sprintf("partition %v: %v", first, e.Partitions[first])
	if more := len(list) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// Unwrap is what the controller said of the partitions.
func (e *RefusedError) Unwrap() []error { return slices.Collect(maps.Values(e.Partitions)) }

// StartMoves starts reassignments. A rate (bytes a second; negative is none) holds them and all that moves already back; it is taken back here when nothing starts, and has to be taken back by Unthrottle when
// all is over. Of a RefusedError the other partitions have been started. Brokers that are not registered cannot be held back and are returned. Unless additional, it is refused while others run.
func (c *Cluster) StartMoves(ctx context.Context, targets plan.Assignment, rate int64, additional bool) (unreachable []int32, err error) {
	active, err := c.Moves(ctx)
	if err != nil {
		return nil, err
	}
	if len(active) > 0 && !additional {
		return nil, fmt.Errorf("reassignments are under way already, of %d partitions", len(active))
	}
	now, err := c.Admissible(ctx, targets)
	if err != nil {
		return nil, err
	}
	if rate >= 0 {
		if unreachable, err = c.throttle(ctx, ThrottlingOf(active, targets, now), rate); err != nil {
			return unreachable, errors.Join(err, c.Unthrottle(ctx, topicsIn(targets)))
		}
	}
	failed, err := c.Reassign(ctx, targets.Partitions(), targets)
	if err == nil && len(failed) > 0 {
		err = &RefusedError{failed}
	}
	if err != nil && rate >= 0 {
		err = errors.Join(err, c.Unthrottle(ctx, topicsIn(targets)))
	}
	return unreachable, err
}

// Admissible refuses partitions and brokers that are not there, and tells where the partitions are.
func (c *Cluster) Admissible(ctx context.Context, targets plan.Assignment) (plan.Assignment, error) {
	alive, _, err := c.Brokers(ctx)
	if err != nil {
		return nil, err
	}
	now, failed, err := c.Replicas(ctx, topicsIn(targets))
	if err != nil {
		return nil, err
	}
	for _, topic := range slices.Sorted(maps.Keys(failed)) {
		return nil, fmt.Errorf("topic %s: %w", topic, failed[topic])
	}
	for _, p := range targets.Partitions() {
		if _, there := now[p]; !there {
			return nil, &NotFoundError{Kind: "partition", Name: p.String()}
		}
		for _, id := range targets[p] {
			if !slices.Contains(now[p], id) && !slices.ContainsFunc(alive, func(b Broker) bool { return b.ID == id }) {
				return nil, &NotFoundError{Kind: "broker", Name: strconv.Itoa(int(id))}
			}
		}
	}
	return now, nil
}

func topicsIn(targets plan.Assignment) []string {
	var names []string
	for _, p := range targets.Partitions() {
		names = append(names, p.Topic)
	}
	return slices.Compact(names)
}

func (c *Cluster) throttle(ctx context.Context, t Throttling, rate int64) (unreachable []int32, err error) {
	if err := c.SetThrottledReplicas(ctx, t.Topics); err != nil {
		return nil, err
	}
	text := strconv.FormatInt(rate, 10)
	return c.SetRates(ctx, t.Brokers, map[string]string{LeaderThrottleRate: text, FollowerThrottleRate: text})
}

// Throttle changes the rate of all that is moving.
func (c *Cluster) Throttle(ctx context.Context, active Moves, rate int64) (unreachable []int32, err error) {
	return c.throttle(ctx, ThrottlingOf(active, nil, nil), rate)
}

// ThrottlesToEnd tells of which topics and brokers throttles are over: but for those that take part in what still runs.
func ThrottlesToEnd(topics []string, brokers []int32, active Moves) ([]string, []int32) {
	topics, brokers = slices.Clone(topics), slices.Clone(brokers)
	for p, m := range active {
		topics = slices.DeleteFunc(topics, func(topic string) bool { return topic == p.Topic })
		brokers = plan.Without(brokers, m.Replicas)
	}
	return topics, brokers
}

// Unthrottle takes back the throttles of topics and of all registered brokers, but for what still moves. It does so also when the context has ended, since nobody else would.
func (c *Cluster) Unthrottle(ctx context.Context, topics []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), TimeoutMs*time.Millisecond)
	defer cancel()
	active, err := c.Moves(ctx)
	if err != nil {
		return err
	}
	alive, _, err := c.Brokers(ctx)
	if err != nil {
		return err
	}
	var ids []int32
	for _, b := range alive {
		ids = append(ids, b.ID)
	}
	topics, ids = ThrottlesToEnd(topics, ids, active)
	return c.EndThrottles(ctx, topics, ids)
}

// ThrottledTopics are the topics of which replicas are held back.
func (c *Cluster) ThrottledTopics(ctx context.Context) ([]string, error) {
	names, err := c.TopicNames(ctx)
	if err != nil {
		return nil, err
	}
	var throttled []string
	for some := range slices.Chunk(names, topicsAtOnce) {
		topics := make([]Topic, len(some))
		for i, name := range some {
			topics[i].Name = name
		}
		if err := addSettings(ctx, c.client, topics, []string{LeaderThrottleReplicas, FollowerThrottleReplicas}); err != nil {
			return nil, err
		}
		for _, t := range topics {
			if slices.ContainsFunc(t.Overrides, func(s Setting) bool { return s.Value != "" }) {
				throttled = append(throttled, t.Name)
			}
		}
	}
	return throttled, nil
}

// CancelMoves ends reassignments where they are, and returns when they are over.
func (c *Cluster) CancelMoves(ctx context.Context, partitions []plan.Partition) error {
	failed, err := c.Reassign(ctx, partitions, nil)
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		return &RefusedError{failed}
	}
	return c.awaitMoves(ctx, partitions)
}

const movesPause = 200 * time.Millisecond

// awaitMoves waits until none of some partitions is being reassigned.
func (c *Cluster) awaitMoves(ctx context.Context, partitions []plan.Partition) error {
	for {
		active, err := c.Moves(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(partitions, func(p plan.Partition) bool { _, moving := active[p]; return moving }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(movesPause):
		}
	}
}

// newsWithin is by when brokers know what the controller has decided, unless something is wrong.
const newsWithin = 5 * time.Second

// AwaitReplicas waits until every broker that answers tells that partitions are where they are to be: the controller knows of the end of a move before the others. It returns what the last one that
// disagreed told, where they do not come to agree.
func (c *Cluster) AwaitReplicas(ctx context.Context, targets plan.Assignment) (plan.Assignment, error) {
	alive, _, err := c.Brokers(ctx)
	if err != nil {
		return nil, err
	}
	var ids []int32
	for _, b := range alive {
		ids = append(ids, b.ID)
	}
	for deadline := time.Now().Add(newsWithin); ; {
		told, _ := each(ctx, ids, func(ctx context.Context, id int32) (plan.Assignment, error) {
			now, _, err := replicasBy(ctx, c.client.Broker(int(id)), topicsIn(targets))
			return now, err
		})
		different := plan.Assignment(nil)
		for _, id := range slices.Sorted(maps.Keys(told)) {
			for p, replicas := range targets {
				if !slices.Equal(told[id][p], replicas) {
					different = told[id]
				}
			}
		}
		if different == nil {
			return targets, ctx.Err()
		}
		if time.Now().After(deadline) {
			return different, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(movesPause):
		}
	}
}

// Progress follows reassignments, with what is left of each and how fast it goes.
type Progress struct {
	cluster *Cluster
	only    []plan.Partition // nil: all
	total   Pace
	each    map[plan.Partition]*Pace
}

// Follow follows the reassignments of some partitions, or of all.
func (c *Cluster) Follow(only []plan.Partition) *Progress {
	return &Progress{cluster: c, only: only, each: map[plan.Partition]*Pace{}}
}

// Left is what is left of a reassignment.
type Left struct {
	Partition plan.Partition
	Move
	Bytes int64 // -1: not known
	Pace  *Pace
}

// Look asks the cluster how far things are: what is left of each, by partition, and the pace of the whole. Bytes are not known while a broker is away.
func (p *Progress) Look(ctx context.Context) (list []Left, total int64, pace *Pace, err error) {
	active, err := p.cluster.Moves(ctx)
	if err != nil {
		return nil, 0, nil, err
	}
	moves, partitions := Moves{}, plan.Assignment{}
	for at, m := range active {
		if p.only == nil || slices.Contains(p.only, at) {
			moves[at], partitions[at] = m, nil
		}
	}
	var left map[plan.Partition]int64
	total = -1
	if len(moves) > 0 {
		if stored, err := p.cluster.Stored(ctx, partitions.Partitions()); err == nil {
			left, total = BytesLeft(stored, moves), 0
		}
	}
	now := time.Now()
	for _, at := range partitions.Partitions() {
		one := Left{Partition: at, Move: moves[at], Bytes: -1}
		if p.each[at] == nil {
			p.each[at] = &Pace{}
		}
		if one.Pace = p.each[at]; left != nil {
			one.Bytes = left[at]
			one.Pace.See(now, one.Bytes)
			total += one.Bytes
		}
		list = append(list, one)
	}
	p.total.See(now, total)
	return list, total, &p.total, nil
}

// EndThrottles takes back the throttles of topics and brokers, whatever moves.
func (c *Cluster) EndThrottles(ctx context.Context, topics []string, brokers []int32) error {
	none := map[string]ThrottledReplicas{}
	for _, topic := range topics {
		none[topic] = ThrottledReplicas{}
	}
	_, err := c.SetRates(ctx, brokers, map[string]string{LeaderThrottleRate: "", FollowerThrottleRate: "", LogDirThrottleRate: ""})
	return errors.Join(err, c.SetThrottledReplicas(ctx, none))
}

// Throttles are the rates that brokers are held back to; a broker that does not tell is an error.
func (c *Cluster) Throttles(ctx context.Context) (map[int32][]Setting, error) {
	alive, _, err := c.Brokers(ctx)
	if err != nil {
		return nil, err
	}
	var ids []int32
	for _, b := range alive {
		ids = append(ids, b.ID)
	}
	throttles, failures := c.throttlesOf(ctx, ids)
	for _, id := range slices.Sorted(maps.Keys(failures)) {
		return throttles, fmt.Errorf("the settings of broker %d: %w", id, failures[id])
	}
	return throttles, nil
}

// ReplicasOn are the partitions of which a broker has a replica, or is getting one.
func (c *Cluster) ReplicasOn(ctx context.Context, broker int32) ([]plan.Partition, error) {
	resp, err := c.metadata(ctx, nil)
	if err != nil {
		return nil, err
	}
	var list []plan.Partition
	for _, t := range topicsOf(resp) {
		for _, p := range t.Partitions {
			if slices.Contains(p.Replicas, broker) {
				list = append(list, plan.Partition{Topic: t.Name, ID: p.ID})
			}
		}
	}
	return list, nil
}
