package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
)

// Leadership is who leads a partition, by one broker's word.
type Leadership struct{ Leader, Epoch int32 }

// View is the cluster as one broker knows it.
type View struct {
	Controller int32 // -1: none
	Brokers    []Broker
	Leaders    map[plan.Partition]Leadership
}

// Snapshot is a cluster as it was when all its brokers were asked, for those who judge it. Nothing in it changes later.
type Snapshot struct {
	Taken      time.Time
	Controller int32           // by the word of whoever answered first; -1: none
	Brokers    []Broker        // that any broker knows as registered, by id
	Views      map[int32]View  // of the brokers that answered
	Silent     map[int32]error // registered brokers that did not
	Topics     []Topic         // with the settings that settingsRead lists
	Moves      Moves           // nil: not known
	Dirs       map[int32][]Dir // by broker
	Throttles  map[int32][]Setting
	Unread     []string // what could not be asked for, and why: what depends on it is not judged

	// Of a thorough snapshot only.
	Groups  map[string][]GroupPartition
	Starts  map[plan.Partition]int64 // log start offsets of what groups read
	Hanging []OpenTransaction
}

// settingsRead are the topic settings that a snapshot has.
var settingsRead = []string{"cleanup.policy", "min.insync.replicas", "retention.bytes", "retention.ms", "segment.bytes", "unclean.leader.election.enable", LeaderThrottleReplicas, FollowerThrottleReplicas}

const (
	patience       = 5 * time.Second // with one broker
	settle         = time.Second     // by when brokers that a change has not reached yet have heard of it
	topicsAtOnce   = 1000
	hangsFor       = 15 * time.Minute // transaction.max.timeout.ms of a broker by default: no living transaction is older
	partitionBatch = 500
)

// Snapshot asks all brokers; thorough asks for groups and transactions too. A broker that does not answer is part of the picture, not an error.
func (c *Cluster) Snapshot(ctx context.Context, now time.Time, thorough bool) (*Snapshot, error) {
	first, err := c.metadata(ctx, nil)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Taken: now, Controller: first.ControllerID, Brokers: brokersOf(first), Topics: topicsOf(first)}
	s.Views, s.Silent = c.views(ctx, s.Brokers)
	if len(s.Disagreements()) > 0 { // a change may be on its way
		select {
		case <-time.After(settle):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if first, err = c.metadata(ctx, nil); err != nil {
			return nil, err
		}
		s.Controller, s.Brokers, s.Topics = first.ControllerID, brokersOf(first), topicsOf(first)
		s.Views, s.Silent = c.views(ctx, s.Brokers)
	}
	c.readSettings(ctx, s)
	c.readMoves(ctx, s)
	c.readDirs(ctx, s)
	c.readThrottles(ctx, s)
	if thorough {
		c.readGroups(ctx, s)
		c.readHanging(ctx, s)
	}
	return s, ctx.Err()
}

// unread notes what could not be asked for.
func (s *Snapshot) unread(what string, err error) {
	if err != nil {
		s.Unread = append(s.Unread, fmt.Sprintf("%s: %v", what, err))
	}
}

// each asks brokers at the same time, each for a while, and returns the answers and the failures.
func each[T any](ctx context.Context, brokers []int32, ask func(ctx context.Context, id int32) (T, error)) (map[int32]T, map[int32]error) {
	var mu sync.Mutex
	answers, failures := map[int32]T{}, map[int32]error{}
	var all sync.WaitGroup
	for _, id := range brokers {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			answer, err := ask(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures[id] = err
				return
			}
			answers[id] = answer
		})
	}
	all.Wait()
	return answers, failures
}

func (c *Cluster) views(ctx context.Context, brokers []Broker) (map[int32]View, map[int32]error) {
	var ids []int32
	for _, b := range brokers {
		ids = append(ids, b.ID)
	}
	return each(ctx, ids, func(ctx context.Context, id int32) (View, error) {
		resp, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, c.client.Broker(int(id)))
		if err != nil {
			return View{}, err
		}
		v := View{resp.ControllerID, brokersOf(resp), map[plan.Partition]Leadership{}}
		for _, t := range resp.Topics {
			if t.Topic == nil {
				continue
			}
			for _, p := range t.Partitions {
				v.Leaders[plan.Partition{Topic: *t.Topic, ID: p.Partition}] = Leadership{p.Leader, p.LeaderEpoch}
			}
		}
		return v, nil
	})
}

// Answering are the brokers that answered, by id.
func (s *Snapshot) Answering() []int32 { return slices.Sorted(maps.Keys(s.Views)) }

// via is a broker that answered, so that a question does not wait for one that does not.
func (c *Cluster) via(s *Snapshot) (*kgo.Broker, error) {
	for _, id := range s.Answering() {
		return c.client.Broker(int(id)), nil
	}
	return nil, errors.New("no broker answers")
}

func (c *Cluster) readSettings(ctx context.Context, s *Snapshot) {
	via, err := c.via(s)
	if err != nil {
		s.unread("the topics' settings", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for some := range slices.Chunk(s.Topics, topicsAtOnce) {
		if err := addSettings(ctx, via, some, settingsRead); err != nil {
			s.unread("the topics' settings", err)
			return
		}
	}
}

func (c *Cluster) readMoves(ctx context.Context, s *Snapshot) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	moves, err := c.Moves(ctx)
	s.unread("reassignments", err)
	s.Moves = moves
	addMoves(s.Topics, moves)
}

func (c *Cluster) readDirs(ctx context.Context, s *Snapshot) {
	dirs, failures := each(ctx, s.Answering(), func(ctx context.Context, id int32) ([]Dir, error) { return c.Dirs(ctx, id, nil) })
	s.Dirs = dirs
	for _, id := range slices.Sorted(maps.Keys(failures)) {
		s.unread(fmt.Sprintf("the log directories of broker %d", id), failures[id])
	}
}

func (c *Cluster) readThrottles(ctx context.Context, s *Snapshot) {
	throttles, failures := c.throttlesOf(ctx, s.Answering())
	s.Throttles = throttles
	for _, id := range slices.Sorted(maps.Keys(failures)) {
		s.unread(fmt.Sprintf("the settings of broker %d", id), failures[id])
	}
}

// throttlesOf reads the rates that brokers are held back to.
func (c *Cluster) throttlesOf(ctx context.Context, brokers []int32) (map[int32][]Setting, map[int32]error) {
	settings, failures := each(ctx, brokers, func(ctx context.Context, id int32) ([]Setting, error) { return c.ownBrokerSettings(ctx, id) })
	throttles := map[int32][]Setting{}
	for id, own := range settings {
		for _, set := range own {
			if set.Name == LeaderThrottleRate || set.Name == FollowerThrottleRate || set.Name == LogDirThrottleRate {
				throttles[id] = append(throttles[id], set)
			}
		}
	}
	return throttles, failures
}

func (c *Cluster) readGroups(ctx context.Context, s *Snapshot) {
	listed, err := c.Groups(ctx)
	if err != nil {
		s.unread("the groups", err)
		return
	}
	var names []string
	for _, g := range listed {
		names = append(names, g.Name)
	}
	if len(names) == 0 {
		return
	}
	described, err := c.DescribeGroups(ctx, names)
	if err != nil {
		s.unread("the groups", err)
		return
	}
	groups, failures, err := c.GroupsPartitions(ctx, described)
	if err != nil {
		s.unread("the groups", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		s.unread("the group "+name, failures[name])
	}
	all := plan.Assignment{}
	for _, of := range groups {
		for _, p := range of {
			all[p.Partition] = nil
		}
	}
	starts, _, err := c.Offsets(ctx, all.Partitions(), Earliest)
	s.unread("the first offsets of partitions", err)
	s.Groups, s.Starts = groups, starts
}

func (c *Cluster) readHanging(ctx context.Context, s *Snapshot) {
	var all []plan.Partition
	for _, t := range s.Topics {
		for _, p := range t.Partitions {
			if !p.Unavailable() {
				all = append(all, plan.Partition{Topic: t.Name, ID: p.ID})
			}
		}
	}
	hanging, err := c.Hanging(ctx, all, nil, s.Taken, hangsFor)
	s.unread("transactions that hang", err)
	s.Hanging = hanging
}

// Disagreement is something that brokers tell differently.
type Disagreement struct {
	What string
	Says map[int32]string // by broker
}

// Disagreements compares what the brokers that answered know.
func (s *Snapshot) Disagreements() []Disagreement {
	var list []Disagreement
	compare := func(what string, tell func(v View) string) {
		says, different := map[int32]string{}, map[string]bool{}
		for id, v := range s.Views {
			says[id] = tell(v)
			different[says[id]] = true
		}
		if len(different) > 1 {
			list = append(list, Disagreement{what, says})
		}
	}
	compare("controller", func(v View) string { return fmt.Sprint(v.Controller) })
	compare("brokers", func(v View) string {
		var ids []int32
		for _, b := range v.Brokers {
			ids = append(ids, b.ID)
		}
		return fmt.Sprint(ids)
	})
	all := plan.Assignment{}
	for _, v := range s.Views {
		for p := range v.Leaders {
			all[p] = nil
		}
	}
	for _, p := range all.Partitions() {
		compare("leader of "+p.String(), func(v View) string {
			l, known := v.Leaders[p]
			if !known {
				return "not known"
			}
			return fmt.Sprintf("%d (epoch %d)", l.Leader, l.Epoch)
		})
	}
	return list
}
