package controller

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The errors that the core answers with.
var (
	unknownServerError = kerr.UnknownServerError
	notController      = kerr.NotController
)

// requested handles a request that only the controller answers.
func (c *Core) requested(ev Requested) error {
	if c.cluster == nil {
		c.answer(ev.ID, refusal(ev.Request, notController))
		return nil
	}
	switch req := ev.Request.(type) {
	case *kmsg.AlterPartitionRequest:
		return c.alterPartition(ev.ID, req)
	case *kmsg.ControlledShutdownRequest:
		return c.controlledShutdown(ev.ID, req)
	case *kmsg.ElectLeadersRequest:
		return c.electLeaders(ev.ID, req)
	case *kmsg.AlterPartitionAssignmentsRequest:
		return c.alterReassignments(ev.ID, req)
	case *kmsg.ListPartitionReassignmentsRequest:
		c.listReassignments(ev.ID, req)
		return nil
	case *kmsg.AllocateProducerIDsRequest:
		return c.allocateProducerIDs(ev.ID, req)
	case *kmsg.UpdateFeaturesRequest:
		c.updateFeatures(ev.ID, req)
		return nil
	}
	c.answer(ev.ID, refusal(ev.Request, kerr.UnsupportedVersion))
	return nil
}

// refusal is the response to req that says nothing but an error, where each API has it.
func refusal(req kmsg.Request, e *kerr.Error) kmsg.Response {
	resp := req.ResponseKind()
	switch r := resp.(type) {
	case *kmsg.AlterPartitionResponse:
		r.ErrorCode = e.Code
	case *kmsg.ControlledShutdownResponse:
		r.ErrorCode = e.Code
	case *kmsg.AlterPartitionAssignmentsResponse:
		r.ErrorCode = e.Code
		r.ErrorMessage = message(e)
	case *kmsg.ListPartitionReassignmentsResponse:
		r.ErrorCode = e.Code
		r.ErrorMessage = message(e)
	case *kmsg.AllocateProducerIDsResponse:
		r.ErrorCode = e.Code
	case *kmsg.UpdateFeaturesResponse:
		r.ErrorCode = e.Code
		r.ErrorMessage = message(e)
	case *kmsg.ElectLeadersResponse:
		refuseElection(req.(*kmsg.ElectLeadersRequest), r, e)
	}
	return resp
}

// refuseElection puts the error on every partition that was named: version 0 has no other place for it, and clients
// look there.
func refuseElection(req *kmsg.ElectLeadersRequest, resp *kmsg.ElectLeadersResponse, e *kerr.Error) {
	if req.Topics == nil {
		resp.ErrorCode = e.Code
	}
	for _, t := range req.Topics {
		out := kmsg.ElectLeadersResponseTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			out.Partitions = append(out.Partitions, kmsg.ElectLeadersResponseTopicPartition{Partition: p, ErrorCode: e.Code})
		}
		resp.Topics = append(resp.Topics, out)
	}
}

// fault is the error of one partition in a response.
type fault struct {
	code int16
	text string
}

func faultOf(e *kerr.Error) *fault { return &fault{e.Code, e.Description} }

var noPartition = &fault{kerr.UnknownTopicOrPartition.Code, "The partition does not exist."}

func message(e *kerr.Error) *string {
	text := e.Description
	return &text
}

// brokerAnswered takes the response to a control request.
func (c *Core) brokerAnswered(ev BrokerAnswered) error {
	if b := c.cluster.brokers[ev.BrokerID]; b == nil || b.epoch != ev.BrokerEpoch {
		return nil
	}
	switch resp := ev.Response.(type) {
	case *kmsg.LeaderAndISRResponse:
		return c.leaderAndISRAnswered(ev.BrokerID, ev.Request.(*kmsg.LeaderAndISRRequest), resp)
	case *kmsg.StopReplicaResponse:
		return c.stopReplicaAnswered(ev.BrokerID, ev.Request.(*kmsg.StopReplicaRequest), resp)
	case *kmsg.UpdateMetadataResponse:
		if resp.ErrorCode != 0 {
			c.logf(LogError, "broker %d refused UpdateMetadata: %v", ev.BrokerID, kerr.ErrorForCode(resp.ErrorCode))
			return nil
		}
		return c.deletionHeard(ev.BrokerID, ev.Request.(*kmsg.UpdateMetadataRequest))
	}
	return nil
}
