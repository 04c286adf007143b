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
	var asked []alteration[admin.AlterSpec]
	for _, ask := range req.Resources {
		one := newAlteration[admin.AlterSpec](ask.ResourceType, ask.ResourceName)
		one.spec.Resource = one.resource
		for _, cfg := range ask.Configs {
			one.spec.Configs = append(one.spec.Configs, admin.ConfigEntry{Name: cfg.Name, Value: cfg.Value})
			one.check.add(cfg.Name, cfg.Value == nil)
		}
		asked = append(asked, one)
	}
	apply := func(ctx context.Context, specs []admin.AlterSpec) []admin.AlterResult {
		return d.deps.Admin.AlterConfigs(ctx, specs, req.ValidateOnly)
	}
	alter(d, c, asked, apply, func(errs []error) {
		resp := kmsg.NewPtrAlterConfigsResponse()
		for i, ask := range req.Resources {
			row := kmsg.NewAlterConfigsResponseResource()
			row.ResourceType, row.ResourceName = ask.ResourceType, ask.ResourceName
			row.ErrorCode, row.ErrorMessage = code(errs[i])
			resp.Resources = append(resp.Resources, row)
		}
		c.answer(resp)
	})
}

// alteration is what a request asks of one resource; a Spec is how admin is told.
type alteration[Spec any] struct {
	resource admin.Resource
	spec     Spec
	check    alterCheck
}

func newAlteration[Spec any](kind kmsg.ConfigResourceType, name string) alteration[Spec] {
	return alteration[Spec]{resource: admin.Resource{Type: admin.ResourceType(kind), Name: name}}
}

// alter applies those of the alterations that can be looked at, in the background,
// and then answers with the error of each.
func alter[Spec any](d *Dispatcher, c *call, asked []alteration[Spec], apply func(context.Context, []Spec) []admin.AlterResult, answer func(errs []error)) {
	counts := make(map[admin.Resource]int, len(asked))
	for i := range asked {
		counts[asked[i].resource]++
	}
	errs := make([]error, len(asked))
	var specs []Spec
	var rows []int
	for i := range asked {
		asked[i].check.twice = counts[asked[i].resource] > 1
		errs[i] = asked[i].check.err()
		if errs[i] == nil {
			if refused := d.mayConfigure(c, kmsg.ACLOperationAlterConfigs, kmsg.ConfigResourceType(asked[i].resource.Type), asked[i].resource.Name); refused != nil {
				errs[i] = refused
			}
		}
		if errs[i] == nil {
			specs, rows = append(specs, asked[i].spec), append(rows, i)
		}
	}
	if len(specs) == 0 {
		answer(errs)
		return
	}
	d.work(c, func(ctx context.Context) {
		for i, r := range apply(ctx, specs) {
			d.faults("configuring "+r.Resource.Name, r.Err)
			errs[rows[i]] = r.Err
		}
		answer(errs)
	})
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
