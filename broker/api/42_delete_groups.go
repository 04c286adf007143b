package api

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteGroups, key 42, versions 0 to 2.
//
//	2  flexible
//
// Only groups without members can be deleted: NON_EMPTY_GROUP. A group named
// twice is answered once.
func (d *Dispatcher) deleteGroups(c *call, req *kmsg.DeleteGroupsRequest) {
	resp := kmsg.NewPtrDeleteGroupsResponse()
	seen := make(map[string]bool, len(req.Groups))
	for _, name := range req.Groups {
		if !seen[name] {
			seen[name] = true
			row := kmsg.NewDeleteGroupsResponseGroup()
			row.Group = name
			resp.Groups = append(resp.Groups, row)
		}
	}
	if len(resp.Groups) == 0 {
		c.answer(resp)
		return
	}
	var left atomic.Int32
	left.Store(int32(len(resp.Groups)))
	for i := range resp.Groups {
		row := &resp.Groups[i]
		done := func(err error) {
			row.ErrorCode, _ = code(err)
			if left.Add(-1) == 0 {
				c.answer(resp)
			}
		}
		if !d.mayGroup(c, kmsg.ACLOperationDelete, row.Group) {
			done(kerr.GroupAuthorizationFailed)
			continue
		}
		d.deps.Groups.DeleteGroup(row.Group, done)
	}
}
