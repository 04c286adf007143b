package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

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
		specs[i].Entity = quotaEntity(req.Entries[i].Entity)
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

// quotaEntity is whom an entry is about; of two parts of one type the last counts.
func quotaEntity(parts []kmsg.AlterClientQuotasRequestEntryEntity) []admin.EntityPart {
	var entity []admin.EntityPart
	for _, part := range parts {
		at := slices.IndexFunc(entity, func(e admin.EntityPart) bool { return e.Type == part.Type })
		if at < 0 {
			at = len(entity)
			entity = append(entity, admin.EntityPart{Type: part.Type})
		}
		entity[at].Name = part.Name
	}
	return entity
}

// entityKey is the same for entities that have the same parts in any order.
func entityKey(entity []admin.EntityPart) string {
	parts := make([]string, len(entity))
	for i, e := range entity {
		parts[i] = strconv.Quote(e.Type)
		if e.Name != nil {
			parts[i] += strconv.Quote(*e.Name)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// alteredQuotas tells of each entity once: of several entries about the same one, what became of the last.
func alteredQuotas(results []admin.QuotaResult) *kmsg.AlterClientQuotasResponse {
	resp := kmsg.NewPtrAlterClientQuotasResponse()
	last := make(map[string]int, len(results))
	for i, r := range results {
		last[entityKey(r.Entity)] = i
	}
	for i, r := range results {
		if last[entityKey(r.Entity)] != i {
			continue
		}
		entry := kmsg.NewAlterClientQuotasResponseEntry()
		entry.ErrorCode, entry.ErrorMessage = code(r.Err)
		for _, part := range r.Entity {
			entry.Entity = append(entry.Entity, kmsg.AlterClientQuotasResponseEntryEntity{Type: part.Type, Name: part.Name})
		}
		resp.Entries = append(resp.Entries, entry)
	}
	return resp
}
