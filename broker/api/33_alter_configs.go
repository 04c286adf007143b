package api

import (
	"context"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
)

// AlterConfigs, key 33, versions 0 to 2: replaces all settings of a topic or
// broker by those given.
//
//	1  throttled after the answer instead of before it (no change here)
//	2  flexible
func (d *Dispatcher) alterConfigs(c *call, req *kmsg.AlterConfigsRequest) {
	twice := resourceCounts(len(req.Resources), func(i int) admin.Resource { return alterResource(&req.Resources[i]) })
	resp := kmsg.NewPtrAlterConfigsResponse()
	var specs []admin.AlterSpec
	var rows []int
	for i := range req.Resources {
		ask := &req.Resources[i]
		row := kmsg.NewAlterConfigsResponseResource()
		row.ResourceType, row.ResourceName = ask.ResourceType, ask.ResourceName
		spec := admin.AlterSpec{Resource: alterResource(ask)}
		check := alterCheck{twice: twice[spec.Resource] > 1}
		for _, cfg := range ask.Configs {
			spec.Configs = append(spec.Configs, admin.ConfigEntry{Name: cfg.Name, Value: cfg.Value})
			check.add(cfg.Name, cfg.Value == nil)
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
		for i, r := range d.deps.Admin.AlterConfigs(ctx, specs, req.ValidateOnly) {
			d.faults("configuring "+r.Resource.Name, r.Err)
			row := &resp.Resources[rows[i]]
			row.ErrorCode, row.ErrorMessage = code(r.Err)
		}
		c.answer(resp)
	})
}

func alterResource(ask *kmsg.AlterConfigsRequestResource) admin.Resource {
	return admin.Resource{Type: admin.ResourceType(ask.ResourceType), Name: ask.ResourceName}
}

// resourceCounts tells how often each resource is named in a request.
func resourceCounts(n int, resource func(int) admin.Resource) map[admin.Resource]int {
	counts := make(map[admin.Resource]int, n)
	for i := range n {
		counts[resource(i)]++
	}
	return counts
}

// alterCheck is what both ways of changing settings refuse before they look at
// the settings themselves.
type alterCheck struct {
	twice bool // the resource is named more than once
	names map[string]struct{}
	again bool // a key is
	nulls []string
}

func (a *alterCheck) add(name string, null bool) {
	if a.names == nil {
		a.names = make(map[string]struct{})
	}
	if _, again := a.names[name]; again {
		a.again = true
	}
	a.names[name] = struct{}{}
	if null {
		a.nulls = append(a.nulls, name)
	}
}

func (a *alterCheck) err() error {
	switch {
	case a.twice:
		return refusal(kerr.InvalidRequest, "Each resource must appear at most once.")
	case a.again:
		return refusal(kerr.InvalidRequest, "Error due to duplicate config keys")
	case len(a.nulls) > 0:
		return refusal(kerr.InvalidRequest, "Null value not supported for : "+strings.Join(a.nulls, ", "))
	}
	return nil
}

// refusal is an error whose text goes to the client as it stands.
func refusal(err *kerr.Error, message string) error {
	return &admin.Error{Code: err, Message: message}
}
