package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
)

// DeleteACLs, key 31, versions 0 to 3 (KIP-140), to any broker.
//
//	1  types of patterns (KIP-290); before, all are literal
//	2  flexible
//	3  resources of type USER
func (d *Dispatcher) deleteACLs(c *call, req *kmsg.DeleteACLsRequest) {
	filters := make([]acl.Filter, len(req.Filters))
	for i, f := range req.Filters {
		filters[i] = acl.Filter{
			Resource: f.ResourceType, Name: f.ResourceName, Type: f.ResourcePatternType,
			Principal: f.Principal, Host: f.Host, Operation: f.Operation, Permission: f.PermissionType,
		}
		if unknownFilter(filters[i]) {
			c.Close(errUnknownElements)
			return
		}
	}
	resp := kmsg.NewPtrDeleteACLsResponse()
	if err := d.mayChangeACLs(c); err != nil {
		for range filters {
			r := kmsg.NewDeleteACLsResponseResult()
			r.ErrorCode, r.ErrorMessage = code(err)
			resp.Results = append(resp.Results, r)
		}
		c.answer(resp)
		return
	}
	d.work(c, func(ctx context.Context) {
		for _, deleted := range d.deps.Authorizer.Delete(ctx, filters) {
			r := kmsg.NewDeleteACLsResponseResult()
			for _, b := range deleted {
				d.faults("deleting access lists", b.Err)
				to := kmsg.NewDeleteACLsResponseResultMatchingACL()
				to.ErrorCode, to.ErrorMessage = code(b.Err)
				to.ResourceType, to.ResourceName, to.ResourcePatternType = b.Resource, b.Name, b.Type
				to.Principal, to.Host, to.Operation, to.PermissionType = b.Principal, b.Host, b.Operation, b.Permission
				r.MatchingACLs = append(r.MatchingACLs, to)
			}
			resp.Results = append(resp.Results, r)
		}
		c.answer(resp)
	})
}
