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
	var asked []alteration[admin.IncrementalSpec]
	for _, ask := range req.Resources {
		one := newAlteration[admin.IncrementalSpec](ask.ResourceType, ask.ResourceName)
		one.spec.Resource = one.resource
		for _, cfg := range ask.Configs {
			one.spec.Ops = append(one.spec.Ops, admin.ConfigOp{Name: cfg.Name, Op: admin.OpType(cfg.Op), Value: cfg.Value})
			one.check.add(cfg.Name, cfg.Value == nil && admin.OpType(cfg.Op) != admin.OpDelete)
		}
		asked = append(asked, one)
	}
	apply := func(ctx context.Context, specs []admin.IncrementalSpec) []admin.AlterResult {
		return d.deps.Admin.IncrementalAlterConfigs(ctx, specs, req.ValidateOnly)
	}
	alter(d, c, asked, apply, func(errs []error) {
		resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
		for i, ask := range req.Resources {
			row := kmsg.NewIncrementalAlterConfigsResponseResource()
			row.ResourceType, row.ResourceName = ask.ResourceType, ask.ResourceName
			row.ErrorCode, row.ErrorMessage = code(errs[i])
			resp.Resources = append(resp.Resources, row)
		}
		c.answer(resp)
	})
}
