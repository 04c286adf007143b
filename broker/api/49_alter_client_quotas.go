package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
)

// AlterClientQuotas, key 49, versions 0 and 1 (KIP-546), to any broker: it
// writes them to ZooKeeper, from where all brokers learn of them.
//
//	1  flexible
//
// Not honoured: quotas are kept for the brokers that enforce them, and this one
// does not.
func (d *Dispatcher) alterClientQuotas(c *call, req *kmsg.AlterClientQuotasRequest) {
	specs := make([]admin.QuotaSpec, len(req.Entries))
	for i := range req.Entries {
		for _, part := range req.Entries[i].Entity {
			specs[i].Entity = append(specs[i].Entity, admin.EntityPart{Type: part.Type, Name: part.Name})
		}
		for _, op := range req.Entries[i].Ops {
			specs[i].Ops = append(specs[i].Ops, admin.QuotaOp{Key: op.Key, Value: op.Value, Remove: op.Remove})
		}
	}
	d.work(c, func(ctx context.Context) {
		if !req.ValidateOnly {
			d.log.Warn("client quotas are kept, but this broker does not enforce them")
		}
		resp := kmsg.NewPtrAlterClientQuotasResponse()
		for _, r := range d.deps.Admin.AlterClientQuotas(ctx, specs, req.ValidateOnly) {
			d.faults("changing a quota", r.Err)
			entry := kmsg.NewAlterClientQuotasResponseEntry()
			entry.ErrorCode, entry.ErrorMessage = code(r.Err)
			for _, part := range r.Entity {
				entry.Entity = append(entry.Entity, kmsg.AlterClientQuotasResponseEntryEntity{Type: part.Type, Name: part.Name})
			}
			resp.Entries = append(resp.Entries, entry)
		}
		c.answer(resp)
	})
}
