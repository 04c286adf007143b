package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/group"
)

// OffsetDelete, key 47, version 0 (KIP-496).
//
// Offsets of topics that the group's members consume stay:
// GROUP_SUBSCRIBED_TO_TOPIC. An error for all comes without rows.
func (d *Dispatcher) offsetDelete(c *call, req *kmsg.OffsetDeleteRequest) {
	if !d.mayGroup(c, kmsg.ACLOperationDelete, req.Group) {
		resp := kmsg.NewPtrOffsetDeleteResponse()
		resp.ErrorCode = kerr.GroupAuthorizationFailed.Code
		c.answer(resp)
		return
	}
	rights := d.topicRights(c, kmsg.ACLOperationRead)
	refused := map[string]error{} // by topic, all of whose partitions are refused alike
	var known []group.TopicPartition
	snapshot := d.deps.Metadata.Load()
	for i := range req.Topics {
		if !rights.allow(req.Topics[i].Topic) {
			refused[req.Topics[i].Topic] = kerr.TopicAuthorizationFailed
			continue
		}
		if snapshot.Topic(req.Topics[i].Topic) == nil {
			refused[req.Topics[i].Topic] = kerr.UnknownTopicOrPartition
			continue
		}
		for _, p := range req.Topics[i].Partitions {
			if snapshot.Partition(req.Topics[i].Topic, p.Partition) != nil {
				known = append(known, group.TopicPartition{Topic: req.Topics[i].Topic, Partition: p.Partition})
			}
		}
	}
	d.deps.Groups.DeleteOffsets(req.Group, known, func(r group.DeleteOffsetsResult) {
		resp := kmsg.NewPtrOffsetDeleteResponse()
		if resp.ErrorCode, _ = code(r.Err); r.Err == nil {
			resp.Topics = deletedOffsets(req, refused, known, r.Errs)
		}
		c.answer(resp)
	})
}

func deletedOffsets(req *kmsg.OffsetDeleteRequest, refused map[string]error, known []group.TopicPartition, errs []error) []kmsg.OffsetDeleteResponseTopic {
	outcome := make(map[group.TopicPartition]error, len(known))
	for i, tp := range known {
		outcome[tp] = errs[i]
	}
	var topics []kmsg.OffsetDeleteResponseTopic
	at := make(map[string]int, len(req.Topics))
	told := make(map[group.TopicPartition]bool, len(known))
	for i := range req.Topics {
		name := req.Topics[i].Topic
		if len(req.Topics[i].Partitions) == 0 && refused[name] == nil {
			continue // there is nothing to tell of it
		}
		if _, again := at[name]; !again { // a topic that is named twice has one row
			at[name] = len(topics)
			t := kmsg.NewOffsetDeleteResponseTopic()
			t.Topic = name
			topics = append(topics, t)
		}
		t := &topics[at[name]]
		for _, from := range req.Topics[i].Partitions {
			tp := group.TopicPartition{Topic: t.Topic, Partition: from.Partition}
			err, asked := outcome[tp]
			if asked && told[tp] {
				continue // the coordinator is asked, and answers, once
			}
			told[tp] = true
			if err == nil {
				err = refused[t.Topic]
			}
			if !asked && err == nil {
				err = kerr.UnknownTopicOrPartition
			}
			p := kmsg.NewOffsetDeleteResponseTopicPartition()
			p.Partition = from.Partition
			p.ErrorCode, _ = code(err)
			t.Partitions = append(t.Partitions, p)
		}
	}
	return topics
}
