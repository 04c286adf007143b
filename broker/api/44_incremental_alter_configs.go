package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
)

// IncrementalAlterConfigs, key 44, versions 0 and 1 (KIP-339): sets, deletes,
// appends to or subtracts from single settings of a topic or broker.
//
//	1  flexible
func (d *Dispatcher) incrementalAlterConfigs(c *call, req *kmsg.IncrementalAlterConfigsRequest) {
	twice := resourceCounts(len(req.Resources), func(i int) admin.Resource { return incrementalResource(&req.Resources[i]) })
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	var specs []admin.IncrementalSpec
	var rows []int
	for i := range req.Resources {
		ask := &req.Resources[i]
		row := kmsg.NewIncrementalAlterConfigsResponseResource()
		row.ResourceType, row.ResourceName = ask.ResourceType, ask.ResourceName
		spec := admin.IncrementalSpec{Resource: incrementalResource(ask)}
		check := alterCheck{twice: twice[spec.Resource] > 1}
		for _, cfg := range ask.Configs {
			spec.Ops = append(spec.Ops, admin.ConfigOp{Name: cfg.Name, Op: admin.OpType(cfg.Op), Value: cfg.Value})
			check.add(cfg.Name, cfg.Value == nil && admin.OpType(cfg.Op) != admin.OpDelete)
		}
		if err := check.err(); err != nil {
			row.ErrorCode, row.ErrorMessage = code(err)
		} else {
			specs, rows = append(specs, spec), append(rows, i)
		}
		resp.Resources = append(resp.Resources, row)
	}
	if len(specs) == 0 {
		c.answer(resp)
		return
	}
	d.work(c, func(ctx context.Context) {
		for i, r := range d.deps.Admin.IncrementalAlterConfigs(ctx, specs, req.ValidateOnly) {
			d.faults("configuring "+r.Resource.Name, r.Err)
			row := &resp.Resources[rows[i]]
			row.ErrorCode, row.ErrorMessage = code(r.Err)
		}
		c.answer(resp)
	})
}

func incrementalResource(ask *kmsg.IncrementalAlterConfigsRequestResource) admin.Resource {
	return admin.Resource{Type: admin.ResourceType(ask.ResourceType), Name: ask.ResourceName}
}
