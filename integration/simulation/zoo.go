package simulation

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/vfs"
	"barnabas/controller"
)

// plants take guards away at the seams between the product's cores: what flows between them is altered as if the one
// who guards had not looked. The product itself knows nothing of them.
type plants struct {
	s    *Sim
	name string
}

func (s *Sim) planted(names ...string) bool {
	for _, n := range names {
		if s.plants.name == n {
			return true
		}
	}
	return false
}

// order lets orders of the past through.
func (p plants) order(b *broker, controllerEpoch *int32, brokerEpoch *int64) {
	switch p.name {
	case "orders of earlier controllers":
		*controllerEpoch = max(*controllerEpoch, b.obeyed)
	case "orders for earlier registrations":
		*brokerEpoch = -1
	}
}

func (p plants) roles(o *partition.LeaderAndISR) {
	for i := range o.Partitions {
		q := &o.Partitions[i]
		switch p.name {
		case "topic ids are not compared":
			q.TopicID, o.Type = commitlog.TopicID{}, partition.RequestUnknown
		case "members of the ISR that move away are left out":
			q.ISR = slices.DeleteFunc(slices.Clone(q.ISR), func(id int32) bool { return !slices.Contains(q.Replicas, id) })
		}
	}
}

func (p plants) stops(o *partition.StopReplicas) {
	if p.name == "deletions of earlier leader epochs" {
		for i := range o.Partitions {
			o.Partitions[i].LeaderEpoch = partition.EpochNotGiven
		}
	}
}

// sent takes an order for carried out as soon as it is sent.
func (p plants) sent(n *node, e controller.Send) {
	req, ok := e.Request.(*kmsg.LeaderAndISRRequest)
	if !ok || p.name != "orders are carried out when they are sent" {
		return
	}
	resp := req.ResponseKind().(*kmsg.LeaderAndISRResponse)
	for _, t := range req.TopicStates {
		topic := kmsg.LeaderAndISRResponseTopic{TopicID: t.TopicID}
		for _, q := range t.PartitionStates {
			topic.Partitions = append(topic.Partitions, kmsg.LeaderAndISRResponseTopicPartition{Partition: q.Partition})
		}
		resp.Topics = append(resp.Topics, topic)
	}
	n.later(0, func() {
		n.step(controller.BrokerAnswered{BrokerID: e.BrokerID, BrokerEpoch: e.BrokerEpoch, Request: req, Response: resp})
	})
}

// fetch alters what a follower asks of its leader.
func (p plants) fetch(q *partition.FetchRequest) {
	for i := range q.Partitions {
		switch p.name {
		case "fetches are not fenced":
			q.Partitions[i].CurrentLeaderEpoch = -1
		case "followers do not truncate":
			q.Partitions[i].LastFetchedEpoch = -1
		}
	}
}

// follows has a new follower cut what it cannot know to be committed, before it asks anybody.
func (p plants) follows(f partition.FetchFrom) {
	if log := f.Partition.Log(); log != nil && p.name == "truncation to the high watermark" {
		_, _ = f.Partition.TruncateTo(f.LeaderEpoch, log.HighWatermark())
	}
}

// version keeps to the worlds in which a guard is needed.
func (p plants) version(s *Sim) {
	switch p.name {
	case "epoch lookups without the found epoch", "the state of before is taken for the outcome":
		s.ibp, _ = controller.ParseIBP("2.6") // later ones write nothing themselves, and ask again with every fetch
	case "topic ids are not compared", "deletions of earlier leader epochs", "orders are carried out when they are sent":
		s.ibp, _ = controller.ParseIBP("3.9")
	}
}

// weigh has a run with a planted fault do more of what its hazard needs.
func (p plants) weigh(s *Sim) {
	kinds := func(list ...func(*Sim, *node)) { s.faults.kinds, s.faults.every = list, 300*time.Millisecond }
	switch p.name {
	case "no flush of a thin ISR":
		kinds(isolate)
		s.flush, s.logConfig.MinInsync = partition.FlushThinISR, 1
	case "epoch lookups without the found epoch":
		kinds(cutLink, isolate)
		s.only.works = []func(*Sim){createTopic, flipLeader, flipLeader, flipLeader}
	case "the state of before is taken for the outcome":
		kinds(breakConnection, breakConnection, cutLink)
		s.zk.maxLag = 300 * time.Millisecond
	case "topic ids are not compared":
		kinds(crash, breakDisk)
		s.only.works, s.only.clubs = []func(*Sim){createTopic, createTopic, deleteTopic, reassignByAPI}, &clubs{}
	case "every end is a clean one":
		kinds(powerCut)
		s.flush = partition.FlushAlways
	case "late writes of a transaction are not noticed":
		s.faults.delay, s.only.clubs = 0.3, &clubs{transforms: true}
	case "unclean elections where they are not allowed":
		kinds(crash, isolate)
	case "orders are carried out when they are sent":
		s.unclean, s.faults.kinds = true, nil
		s.only.works, s.only.clubs = []func(*Sim){createTopic, awayAndLost}, &clubs{}
	}
}

// modern is a cluster whose topics have ids.
func (plants) modern(s *Sim) {
	s.ibp, _ = controller.ParseIBP("3.9")
	s.alterPartition, s.alterPartitionVersion = true, 3
}

func (p plants) fence(epoch *int32) {
	if p.name == "fetches are not fenced" {
		*epoch = -1
	}
}

// answer alters what a leader answers its follower.
func (p plants) answer(f *following, req kmsg.Request, resp kmsg.Response) {
	switch r := resp.(type) {
	case *kmsg.OffsetForLeaderEpochResponse:
		if r == nil {
			return
		}
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				e := &r.Topics[i].Partitions[j]
				switch {
				case e.ErrorCode != 0:
				case p.name == "epoch lookups without the found epoch":
					e.LeaderEpoch = -1
				case p.name == "followers do not truncate":
					e.LeaderEpoch, e.EndOffset = -1, 1<<40
				}
			}
		}
	case *kmsg.FetchResponse:
		if r == nil || p.name != "the high watermark beside a diverging epoch" {
			return
		}
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				e := &r.Topics[i].Partitions[j]
				if e.DivergingEpoch.EndOffset < 0 {
					continue
				}
				topic := r.Topics[i].Topic
				if r.Version >= 13 {
					topic = f.n.broker.names[r.Topics[i].TopicID]
				}
				if log := f.n.broker.logs.Get(commitlog.TopicPartition{Topic: topic, Partition: e.Partition}); log != nil && e.HighWatermark > log.HighWatermark() {
					in := f.n.s.incarnation(controller.TopicPartition{Topic: topic, Partition: e.Partition})
					at := log.HighWatermark()
					log.SetHighWatermark(min(e.HighWatermark, log.EndOffset()))
					c := &consumer{s: f.n.s, at: map[incarnation]int64{in: at}}
					c.fetch(f.n, in) // at this very moment
				}
			}
		}
	}
}

// disk lets a broker see another disk than it has.
func (p plants) disk(disk vfs.FS) vfs.FS {
	if p.name == "failed syncs are not noticed" {
		return deafFS{disk}
	}
	return disk
}

// deafFS hears of no failure of a sync.
type deafFS struct{ vfs.FS }

func (d deafFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return deafFile{f}, nil
}

type deafFile struct{ vfs.File }

func (f deafFile) Sync() error {
	if err := f.File.Sync(); !errors.Is(err, errDisk) {
		return err
	}
	return nil
}

// image alters the disk after a crash.
func (p plants) image(n *node, how howItEnds) {
	if p.name != "every end is a clean one" || how == processEnds || n.s.flush != partition.FlushAlways {
		return
	}
	f, err := n.disk.OpenFile(dataDir+"/.kafka_cleanshutdown", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return // not even the directory is there yet
	}
	_ = f.Append([]byte(`{"version":0,"brokerEpoch":-1}`))
	_ = f.Close()
}
