package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
)

// DescribeClientQuotas, key 48, versions 0 and 1 (KIP-546), to any broker.
//
//	1  flexible
func (d *Dispatcher) describeClientQuotas(c *call, req *kmsg.DescribeClientQuotasRequest) {
	if !d.mayCluster(c, kmsg.ACLOperationDescribeConfigs) {
		resp := kmsg.NewPtrDescribeClientQuotasResponse()
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		c.answer(resp)
		return
	}
	if slices.ContainsFunc(req.Components, meaningless) {
		resp := kmsg.NewPtrDescribeClientQuotasResponse()
		resp.ErrorCode = kerr.UnknownServerError.Code
		c.answer(resp)
		return
	}
	filters := make([]admin.QuotaFilter, len(req.Components))
	for i, f := range req.Components {
		filters[i] = admin.QuotaFilter{Type: f.EntityType, Match: admin.MatchType(f.MatchType), Name: f.Match}
	}
	d.work(c, func(ctx context.Context) {
		resp := kmsg.NewPtrDescribeClientQuotasResponse()
		found, err := d.deps.Admin.DescribeClientQuotas(ctx, filters, req.Strict)
		resp.ErrorCode, resp.ErrorMessage = code(err)
		resp.ErrorMessage = emptyText(resp.ErrorCode, resp.ErrorMessage)
		if err != nil {
			d.faults("describing quotas", err)
			c.answer(resp)
			return
		}
		resp.Entries = make([]kmsg.DescribeClientQuotasResponseEntry, len(found)) // null is for errors
		for i, q := range found {
			entry := &resp.Entries[i]
			for _, part := range q.Entity {
				entry.Entity = append(entry.Entity, kmsg.DescribeClientQuotasResponseEntryEntity{Type: part.Type, Name: part.Name})
			}
			for _, v := range q.Values {
				entry.Values = append(entry.Values, kmsg.DescribeClientQuotasResponseEntryValue{Key: v.Key, Value: v.Value})
			}
		}
		c.answer(resp)
	})
}

// meaningless tells whether a component has a kind of match that there is not, or asks for exactly nothing: Kafka fails on both before it looks at anything else.
func meaningless(f kmsg.DescribeClientQuotasRequestComponent) bool {
	switch f.MatchType {
	case kmsg.QuotasMatchTypeExact:
		return f.Match == nil
	case kmsg.QuotasMatchTypeDefault, kmsg.QuotasMatchTypeAny:
		return false
	}
	return true
}
