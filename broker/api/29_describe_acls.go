package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/acl"
)

// DescribeACLs, key 29, versions 0 to 3 (KIP-140), to any broker.
//
//	1  types of patterns (KIP-290); before, all are literal
//	2  flexible
//	3  resources of type USER
func (d *Dispatcher) describeACLs(c *call, req *kmsg.DescribeACLsRequest) {
	filter := acl.Filter{
		Resource: req.ResourceType, Name: req.ResourceName, Type: req.ResourcePatternType,
		Principal: req.Principal, Host: req.Host, Operation: req.Operation, Permission: req.PermissionType,
	}
	if unknownFilter(filter) {
		c.Close(errUnknownElements)
		return
	}
	resp := kmsg.NewPtrDescribeACLsResponse()
	switch {
	case !d.mayCluster(c, kmsg.ACLOperationDescribe):
		resp.ErrorCode, resp.ErrorMessage = code(c.clusterRefusal())
	case d.deps.Authorizer == nil:
		resp.ErrorCode, resp.ErrorMessage = code(&admin.Error{Code: kerr.SecurityDisabled, Message: "No Authorizer is configured on the broker"})
	default:
		resp.ErrorMessage = new(string)
		resp.Resources = describedACLs(d.deps.Authorizer.Find(filter))
	}
	c.answer(resp)
}

// describedACLs groups bindings, whose order is that of patterns.
func describedACLs(bindings []acl.Binding) []kmsg.DescribeACLsResponseResource {
	var resources []kmsg.DescribeACLsResponseResource
	for i, b := range bindings {
		if i == 0 || bindings[i-1].Pattern != b.Pattern {
			r := kmsg.NewDescribeACLsResponseResource()
			r.ResourceType, r.ResourceName, r.ResourcePatternType = b.Resource, b.Name, b.Type
			resources = append(resources, r)
		}
		to := kmsg.NewDescribeACLsResponseResourceACL()
		to.Principal, to.Host, to.Operation, to.PermissionType = b.Principal, b.Host, b.Operation, b.Permission
		last := &resources[len(resources)-1]
		last.ACLs = append(last.ACLs, to)
	}
	return slices.Clip(resources)
}

// unknownFilter tells whether a field of a filter says UNKNOWN, which nobody may ask for.
func unknownFilter(f acl.Filter) bool {
	return f.Resource == 0 || f.Type == 0 || f.Operation == 0 || f.Permission == 0
}
