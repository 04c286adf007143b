package api

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/metadata"
)

// ElectLeaders, key 43, versions 0 to 2, to the controller. It is answered when
// this broker's metadata shows the leaders elected, so that who asks next sees
// them; a partition that it does not show in time is told to have timed out.
//
//	1  unclean election, error code of the whole
//	2  flexible
func (d *Dispatcher) electLeaders(c *call, req *kmsg.ElectLeadersRequest) {
	if !d.mayCluster(c, kmsg.ACLOperationAlter) {
		c.answer(electionRefused(req, kerr.ClusterAuthorizationFailed))
		return
	}
	if req.ElectionType < preferredElection || req.ElectionType > uncleanElection {
		c.answer(electionRefused(req, kerr.UnknownServerError))
		return
	}
	deadline := time.Now().Add(millis(req.TimeoutMillis))
	d.deps.Controller.Do(req, func(answer kmsg.Response) {
		e := election{unclean: req.ElectionType != preferredElection, resp: answer.(*kmsg.ElectLeadersResponse)}
		d.waits.await(max(0, time.Until(deadline)), e.shownBy, func(s *metadata.Snapshot) {
			e.timeOut(s)
			c.answer(e.resp)
		})
	})
}

// electionRefused says of everything that it may not be.
func electionRefused(req *kmsg.ElectLeadersRequest, why *kerr.Error) *kmsg.ElectLeadersResponse {
	resp := kmsg.NewPtrElectLeadersResponse()
	resp.ErrorCode = why.Code
	for i := range req.Topics {
		t := kmsg.NewElectLeadersResponseTopic()
		t.Topic = req.Topics[i].Topic
		for _, id := range req.Topics[i].Partitions {
			p := kmsg.NewElectLeadersResponseTopicPartition()
			p.Partition, p.ErrorCode = id, why.Code
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// The kinds of elections (KIP-460): of the first replica, and of whichever lives.
const (
	preferredElection int8 = 0
	uncleanElection   int8 = 1
)

// election is what the controller has done, on its way into the metadata.
type election struct {
	unclean bool
	resp    *kmsg.ElectLeadersResponse
}

// shownBy tells whether a snapshot has every leader that was elected.
func (e election) shownBy(s *metadata.Snapshot) bool {
	for i := range e.resp.Topics {
		t := &e.resp.Topics[i]
		for j := range t.Partitions {
			if t.Partitions[j].ErrorCode == 0 && !e.ledIn(s, t.Topic, t.Partitions[j].Partition) {
				return false
			}
		}
	}
	return true
}

// ledIn tells whether a partition has the leader of the election: the first
// replica, or of an unclean one, which is held where no leader lives, one that
// lives.
func (e election) ledIn(s *metadata.Snapshot, topic string, id int32) bool {
	t := s.Topic(topic)
	if t == nil {
		return false
	}
	p := t.Partition(id)
	if p == nil {
		return false
	}
	if e.unclean {
		return s.Brokers[p.Leader] != nil
	}
	return len(p.Replicas) > 0 && p.Leader == p.Replicas[0]
}

func (e election) timeOut(s *metadata.Snapshot) {
	for i := range e.resp.Topics {
		t := &e.resp.Topics[i]
		for j := range t.Partitions {
			if p := &t.Partitions[j]; p.ErrorCode == 0 && !e.ledIn(s, t.Topic, p.Partition) {
				p.ErrorCode = kerr.RequestTimedOut.Code
			}
		}
	}
}
