package api

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/acl"
)

// CreateACLs, key 30, versions 0 to 3 (KIP-140), to any broker.
//
//	1  types of patterns (KIP-290); before, all are literal
//	2  flexible
//	3  resources of type USER
func (d *Dispatcher) createACLs(c *call, req *kmsg.CreateACLsRequest) {
	bindings := make([]acl.Binding, len(req.Creations))
	for i, a := range req.Creations {
		bindings[i] = acl.Binding{
			Pattern: acl.Pattern{Resource: a.ResourceType, Name: a.ResourceName, Type: a.ResourcePatternType},
			Entry:   acl.Entry{Principal: a.Principal, Host: a.Host, Operation: a.Operation, Permission: a.PermissionType},
		}
		if a.ResourceType == 0 || a.ResourcePatternType == 0 || a.Operation == 0 || a.PermissionType == 0 {
			c.Close(errUnknownElements)
			return
		}
	}
	if err := d.mayChangeACLs(c); err != nil {
		c.answer(createdACLs(make([]error, len(bindings)), err))
		return
	}
	if slices.ContainsFunc(bindings, ambiguous) {
		c.answer(createdACLs(make([]error, len(bindings)), kerr.UnknownServerError))
		return
	}
	d.work(c, func(ctx context.Context) {
		errs := make([]error, len(bindings))
		var at []int
		var valid []acl.Binding
		for i, b := range bindings {
			if errs[i] = validACL(b); errs[i] == nil {
				at, valid = append(at, i), append(valid, b)
			}
		}
		for i, err := range d.deps.Authorizer.Create(ctx, valid) {
			errs[at[i]] = err
		}
		d.faults("creating access lists", errs...)
		c.answer(createdACLs(errs, nil))
	})
}

// errUnknownElements closes the connection of a client that speaks of what no protocol knows.
var errUnknownElements = errors.New("an access list of an unknown resource, pattern, operation or permission")

// mayChangeACLs tells why the client may not change access lists.
func (d *Dispatcher) mayChangeACLs(c *call) error {
	switch {
	case !d.mayCluster(c, kmsg.ACLOperationAlter):
		return c.clusterRefusal()
	case d.deps.Authorizer == nil:
		return &admin.Error{Code: kerr.SecurityDisabled, Message: "No Authorizer is configured."}
	}
	return nil
}

// ambiguous tells whether a binding is what only filters may be. Kafka stumbles over
// one, and refuses the whole request with nothing but UNKNOWN_SERVER_ERROR.
func ambiguous(b acl.Binding) bool {
	return b.Resource == kmsg.ACLResourceTypeAny || b.Type == kmsg.ACLResourcePatternTypeAny || b.Type == kmsg.ACLResourcePatternTypeMatch ||
		b.Operation == kmsg.ACLOperationAny || b.Permission == kmsg.ACLPermissionTypeAny
}

func validACL(b acl.Binding) error {
	switch {
	case b.Resource == kmsg.ACLResourceTypeCluster && b.Name != acl.ClusterName:
		return &admin.Error{Code: kerr.InvalidRequest, Message: "The only valid name for the CLUSTER resource is " + acl.ClusterName}
	case b.Name == "":
		return &admin.Error{Code: kerr.InvalidRequest, Message: "Invalid empty resource name"}
	}
	return nil
}

// createdACLs answers with the errors, or with the one of all.
func createdACLs(errs []error, all error) *kmsg.CreateACLsResponse {
	resp := kmsg.NewPtrCreateACLsResponse()
	for _, err := range errs {
		r := kmsg.NewCreateACLsResponseResult()
		if all != nil {
			err = all
		}
		r.ErrorCode, r.ErrorMessage = code(err)
		r.ErrorMessage = emptyText(r.ErrorCode, r.ErrorMessage)
		resp.Results = append(resp.Results, r)
	}
	return resp
}
