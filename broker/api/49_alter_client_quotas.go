package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
)

// AlterClientQuotas, key 49, versions 0 and 1 (KIP-546), to any broker: it
// writes them to ZooKeeper, from where all brokers learn of them.
//
//	1  flexible
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
	if !d.mayCluster(c, kmsg.ACLOperationAlterConfigs) {
		results := make([]admin.QuotaResult, len(specs))
		for i := range specs {
			results[i] = admin.QuotaResult{Entity: specs[i].Entity, Err: refusal(kerr.ClusterAuthorizationFailed, "Cluster authorization failed.")}
		}
		c.answer(alteredQuotas(results))
		return
	}
	d.work(c, func(ctx context.Context) {
		results := d.deps.Admin.AlterClientQuotas(ctx, specs, req.ValidateOnly)
		for _, r := range results {
			d.faults("changing a quota", r.Err)
		}
		c.answer(alteredQuotas(results))
	})
}

func alteredQuotas(results []admin.QuotaResult) *kmsg.AlterClientQuotasResponse {
	resp := kmsg.NewPtrAlterClientQuotasResponse()
	for _, r := range results {
		entry := kmsg.NewAlterClientQuotasResponseEntry()
		entry.ErrorCode, entry.ErrorMessage = code(r.Err)
		for _, part := range r.Entity {
			entry.Entity = append(entry.Entity, kmsg.AlterClientQuotasResponseEntryEntity{Type: part.Type, Name: part.Name})
		}
		resp.Entries = append(resp.Entries, entry)
	}
	return resp
}
