package cluster

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
)

// Quotas are those of whom all filters match (KIP-546); with strict, of nobody who has parts of other types besides. No filters match everybody.
func (c *Cluster) Quotas(ctx context.Context, strict bool, filters ...admin.QuotaFilter) ([]admin.QuotaDescription, error) {
	req := kmsg.NewPtrDescribeClientQuotasRequest()
	req.Strict = strict
	for _, f := range filters {
		to := kmsg.NewDescribeClientQuotasRequestComponent()
		to.EntityType, to.MatchType, to.Match = f.Type, kmsg.QuotasMatchType(f.Match), f.Name
		req.Components = append(req.Components, to)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return nil, err
	}
	if err := Answered(resp.ErrorCode, resp.ErrorMessage); err != nil {
		return nil, err
	}
	var found []admin.QuotaDescription
	for _, e := range resp.Entries {
		var of admin.QuotaDescription
		for _, p := range e.Entity {
			of.Entity = append(of.Entity, admin.EntityPart{Type: p.Type, Name: p.Name})
		}
		for _, v := range e.Values {
			of.Values = append(of.Values, admin.QuotaValue{Key: v.Key, Value: v.Value})
		}
		found = append(found, of)
	}
	return found, nil
}

// QuotasOf are those of exactly one, by name; to have none is no error.
func (c *Cluster) QuotasOf(ctx context.Context, entity admin.QuotaEntity) (map[string]float64, error) {
	var filters []admin.QuotaFilter
	for _, p := range entity {
		f := admin.QuotaFilter{Type: p.Type, Match: admin.MatchExact, Name: p.Name}
		if p.Name == nil {
			f.Match = admin.MatchDefault
		}
		filters = append(filters, f)
	}
	found, err := c.Quotas(ctx, true, filters...)
	quotas := map[string]float64{}
	for _, of := range found {
		for _, v := range of.Values {
			quotas[v.Key] = v.Value
		}
	}
	return quotas, err
}

// AlterQuotas changes quotas of one, all or none; or, with validateOnly, tells whether that would be done.
func (c *Cluster) AlterQuotas(ctx context.Context, entity admin.QuotaEntity, ops []admin.QuotaOp, validateOnly bool) error {
	entry := kmsg.NewAlterClientQuotasRequestEntry()
	for _, p := range entity {
		to := kmsg.NewAlterClientQuotasRequestEntryEntity()
		to.Type, to.Name = p.Type, p.Name
		entry.Entity = append(entry.Entity, to)
	}
	for _, op := range ops {
		to := kmsg.NewAlterClientQuotasRequestEntryOp()
		to.Key, to.Value, to.Remove = op.Key, op.Value, op.Remove
		entry.Ops = append(entry.Ops, to)
	}
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.Entries, req.ValidateOnly = append(req.Entries, entry), validateOnly
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return err
	}
	for _, e := range resp.Entries {
		if err := Answered(e.ErrorCode, e.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}
