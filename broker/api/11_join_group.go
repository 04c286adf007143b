package api

import (
	"fmt"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/group"
)

// JoinGroup, key 11, versions 0 to 9.
//
//	1  rebalance timeout, before the session timeout
//	4  a new member gets its id first (MEMBER_ID_REQUIRED) and joins with it
//	   (KIP-394); older versions are joined at once (BR-008)
//	5  group instance id (KIP-345)
//	6  flexible
//	7  protocol type in the answer
//	8  reason (KIP-800)
//	9  a static leader that comes back may be told not to assign (KIP-814)
func (d *Dispatcher) joinGroup(c *call, req *kmsg.JoinGroupRequest) {
	if !d.mayGroup(c, kmsg.ACLOperationRead, req.Group) {
		c.answer(joinGroupAnswer(req, group.JoinResult{Err: kerr.GroupAuthorizationFailed, Generation: group.NoGeneration}))
		return
	}
	ask := &group.JoinRequest{
		Group: req.Group, MemberID: req.MemberID, InstanceID: req.InstanceID,
		RequireMemberID: req.Version >= 4 && req.InstanceID == nil, CanSkipAssignment: req.Version >= 9,
		ClientID: c.clientID(), ClientHost: javaAddress(c.Conn.Remote),
		RebalanceTimeoutMs: req.RebalanceTimeoutMillis, SessionTimeoutMs: req.SessionTimeoutMillis,
		ProtocolType: req.ProtocolType, Protocols: make([]group.Protocol, len(req.Protocols)), Reason: "not provided",
	}
	if req.Version == 0 {
		ask.RebalanceTimeoutMs = req.SessionTimeoutMillis
	}
	if req.Reason != nil {
		ask.Reason = *req.Reason
	}
	for i, p := range req.Protocols {
		ask.Protocols[i] = group.Protocol{Name: p.Name, Metadata: p.Metadata}
	}
	d.deps.Groups.Join(ask, func(r group.JoinResult) { c.answer(joinGroupAnswer(req, r)) })
}

func joinGroupAnswer(req *kmsg.JoinGroupRequest, r group.JoinResult) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.ErrorCode, _ = code(r.Err)
	resp.Generation, resp.ProtocolType, resp.Protocol = r.Generation, r.ProtocolType, r.Protocol
	resp.LeaderID, resp.SkipAssignment, resp.MemberID = r.LeaderID, r.SkipAssignment, r.MemberID
	if req.Version < 7 && r.Protocol == nil {
		resp.Protocol = new(string)
	}
	resp.Members = make([]kmsg.JoinGroupResponseMember, len(r.Members))
	for i, m := range r.Members {
		to := &resp.Members[i]
		to.MemberID, to.InstanceID, to.ProtocolMetadata = m.MemberID, m.InstanceID, m.Metadata
	}
	return resp
}

// javaAddress is an address as Java prints one without a name, which tools show
// as a member's host: "/127.0.0.1".
func javaAddress(a net.Addr) string { return "/" + javaHost(a) }

// javaHost is an address as Java writes it, which is also how access lists name
// hosts: one of IPv6 has all of its eight groups.
func javaHost(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return a.String()
	}
	if v4 := tcp.IP.To4(); v4 != nil {
		return v4.String()
	}
	ip := tcp.IP.To16()
	var groups []string
	for i := 0; i+1 < len(ip); i += 2 {
		groups = append(groups, fmt.Sprintf("%x", uint16(ip[i])<<8|uint16(ip[i+1])))
	}
	host := strings.Join(groups, ":")
	if tcp.Zone != "" {
		host += "%" + tcp.Zone
	}
	return host
}
