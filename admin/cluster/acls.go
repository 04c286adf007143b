package cluster

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
)

// ACLs are the access lists that a filter chooses, in the broker's order.
func (c *Cluster) ACLs(ctx context.Context, f acl.Filter) ([]acl.Binding, error) {
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType, req.ResourceName, req.ResourcePatternType = f.Resource, f.Name, f.Type
	req.Principal, req.Host, req.Operation, req.PermissionType = f.Principal, f.Host, f.Operation, f.Permission
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return nil, err
	}
	if err := Answered(resp.ErrorCode, resp.ErrorMessage); err != nil {
		return nil, err
	}
	var found []acl.Binding
	for _, r := range resp.Resources {
		for _, a := range r.ACLs {
			found = append(found, acl.Binding{
				Pattern: acl.Pattern{Resource: r.ResourceType, Name: r.ResourceName, Type: r.ResourcePatternType},
				Entry:   acl.Entry{Principal: a.Principal, Host: a.Host, Operation: a.Operation, Permission: a.PermissionType},
			})
		}
	}
	return found, nil
}

// AddACLs adds entries, each by itself; failed tells of each what was wrong with it. One that is there already is no error.
func (c *Cluster) AddACLs(ctx context.Context, bindings []acl.Binding) (failed []error, err error) {
	req := kmsg.NewPtrCreateACLsRequest()
	for _, b := range bindings {
		to := kmsg.NewCreateACLsRequestCreation()
		to.ResourceType, to.ResourceName, to.ResourcePatternType = b.Resource, b.Name, b.Type
		to.Principal, to.Host, to.Operation, to.PermissionType = b.Principal, b.Host, b.Operation, b.Permission
		req.Creations = append(req.Creations, to)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return nil, err
	}
	failed = make([]error, len(bindings))
	for i, r := range resp.Results {
		if i < len(failed) {
			failed[i] = Answered(r.ErrorCode, r.ErrorMessage)
		}
	}
	return failed, nil
}

// RemoveACLs takes away what any of the filters chooses; the error is that of the first of those that could not be taken away.
func (c *Cluster) RemoveACLs(ctx context.Context, filters []acl.Filter) error {
	req := kmsg.NewPtrDeleteACLsRequest()
	for _, f := range filters {
		to := kmsg.NewDeleteACLsRequestFilter()
		to.ResourceType, to.ResourceName, to.ResourcePatternType = f.Resource, f.Name, f.Type
		to.Principal, to.Host, to.Operation, to.PermissionType = f.Principal, f.Host, f.Operation, f.Permission
		req.Filters = append(req.Filters, to)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return err
	}
	for _, r := range resp.Results {
		if err := Answered(r.ErrorCode, r.ErrorMessage); err != nil {
			return err
		}
		for _, b := range r.MatchingACLs {
			if err := Answered(b.ErrorCode, b.ErrorMessage); err != nil {
				return err
			}
		}
	}
	return nil
}

// ACLPolicy is what stands above the access lists, as far as a broker tells. It names the settings of an authorizer only when they are set, and keeps their values to itself.
type ACLPolicy struct {
	acl.Policy
	SuperUsersKnown, UnlistedKnown bool
}

// The settings of an authorizer.
const (
	superUsers    = "super.users"
	allowUnlisted = "allow.everyone.if.no.acl.found"
)

// ACLPolicy asks one of the brokers.
func (c *Cluster) ACLPolicy(ctx context.Context) (ACLPolicy, error) {
	brokers, _, err := c.Brokers(ctx)
	if err != nil || len(brokers) == 0 {
		return ACLPolicy{}, err
	}
	settings, err := c.BrokerConfig(ctx, brokers[0].ID)
	if err != nil {
		return ACLPolicy{}, err
	}
	return policyOf(settings), nil
}

func policyOf(settings []DescribedSetting) ACLPolicy {
	unset := func(name string) bool {
		return !slices.ContainsFunc(settings, func(s DescribedSetting) bool { return s.Name == name })
	}
	return ACLPolicy{SuperUsersKnown: unset(superUsers), UnlistedKnown: unset(allowUnlisted)}
}

// DecideACL tells whether somebody may do an operation on a resource, and why, by the access lists that concern it now.
func (c *Cluster) DecideACL(ctx context.Context, policy acl.Policy, who acl.Subject, op kmsg.ACLOperation, resource kmsg.ACLResourceType, name string) (acl.Decision, error) {
	concerning, err := c.ACLs(ctx, acl.Filter{Resource: resource, Name: &name, Type: kmsg.ACLResourcePatternTypeMatch, Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny})
	if err != nil {
		return acl.Decision{}, err
	}
	return decide(policy, concerning, who, op, resource, name)
}

// decide decides by entries in any order, since Apache Kafka's brokers keep none: of those that allow it, one that names the operation is named before one that implies it.
func decide(policy acl.Policy, by []acl.Binding, who acl.Subject, op kmsg.ACLOperation, resource kmsg.ACLResourceType, name string) (acl.Decision, error) {
	implied := func(b acl.Binding) int {
		if b.Operation == op {
			return 0
		}
		return 1
	}
	slices.SortFunc(by, func(a, b acl.Binding) int { return cmp.Or(implied(a)-implied(b), a.Compare(b)) })
	entries := map[acl.Pattern][]acl.Entry{}
	for _, b := range by {
		entries[b.Pattern] = append(entries[b.Pattern], b.Entry)
	}
	table, err := (*acl.Table)(nil).With(entries)
	return policy.Decide(table, who, op, resource, name), err
}
