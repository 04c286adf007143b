package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
)

// DescribeConfigs, key 32, versions 0 to 4.
//
//	1  source and synonyms instead of the default flag (KIP-226)
//	3  type and documentation (KIP-569)
//	4  flexible
//
// A null list of keys and an empty one both mean all keys, and the default flag
// of version 0 is never set, as in Kafka 3.9. A resource of a type that has no
// configuration makes the whole request invalid.
func (d *Dispatcher) describeConfigs(c *call, req *kmsg.DescribeConfigsRequest) {
	for i := range req.Resources {
		if !configurable(req.Resources[i].ResourceType) {
			c.answer(describeConfigsRefused(req))
			return
		}
	}
	options := admin.DescribeOptions{Synonyms: req.IncludeSynonyms, Documentation: req.IncludeDocumentation}
	resp := kmsg.NewPtrDescribeConfigsResponse()
	var specs []admin.DescribeSpec
	var rows []int
	snapshot := d.deps.Metadata.Load()
	for i := range req.Resources {
		ask := &req.Resources[i]
		row := kmsg.NewDescribeConfigsResponseResource()
		row.ResourceType, row.ResourceName = ask.ResourceType, ask.ResourceName
		row.ErrorMessage = new(string) // empty, not null, where there is nothing to say
		if err := d.mayConfigure(c, kmsg.ACLOperationDescribeConfigs, ask.ResourceType, ask.ResourceName); err != nil {
			row.ErrorCode, row.ErrorMessage = code(refusal(err, refusedConfigs[err]))
		} else if admin.ResourceType(ask.ResourceType) == admin.ResourceTopic && validTopicName(ask.ResourceName) && snapshot.Topic(ask.ResourceName) == nil {
			row.ErrorCode = kerr.UnknownTopicOrPartition.Code
		} else {
			specs, rows = append(specs, describeSpec(ask)), append(rows, i)
		}
		resp.Resources = append(resp.Resources, row)
	}
	if len(specs) == 0 {
		c.answer(resp)
		return
	}
	d.work(c, func(ctx context.Context) {
		for i, r := range d.deps.Admin.DescribeConfigs(ctx, specs, options) {
			d.faults("describing "+r.Resource.Name, r.Err)
			fillDescribed(&resp.Resources[rows[i]], &r, options)
		}
		c.answer(resp)
	})
}

// refusedConfigs is what Kafka says beside a refusal to describe settings.
var refusedConfigs = map[*kerr.Error]string{
	kerr.TopicAuthorizationFailed:   "Topic authorization failed.",
	kerr.ClusterAuthorizationFailed: "Cluster authorization failed.",
}

// mayConfigure tells why the client may not describe or alter settings; nil where it
// may. Those of brokers are the cluster's.
func (d *Dispatcher) mayConfigure(c *call, op kmsg.ACLOperation, kind kmsg.ConfigResourceType, name string) *kerr.Error {
	switch {
	case kind == kmsg.ConfigResourceTypeTopic && !d.mayTopic(c, op, name):
		return kerr.TopicAuthorizationFailed
	case kind != kmsg.ConfigResourceTypeTopic && !d.mayCluster(c, op):
		return kerr.ClusterAuthorizationFailed
	}
	return nil
}

// configurable tells the types that Kafka 3.9 knows: topics, brokers, loggers,
// and the client metrics of KIP-714.
func configurable(t kmsg.ConfigResourceType) bool {
	switch t {
	case kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger, kmsg.ConfigResourceTypeClientMetrics:
		return true
	}
	return false
}

func describeConfigsRefused(req *kmsg.DescribeConfigsRequest) *kmsg.DescribeConfigsResponse {
	resp := kmsg.NewPtrDescribeConfigsResponse()
	for i := range req.Resources {
		row := kmsg.NewDescribeConfigsResponseResource()
		row.ResourceType, row.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
		row.ErrorCode, row.ErrorMessage = kerr.InvalidRequest.Code, &kerr.InvalidRequest.Description
		resp.Resources = append(resp.Resources, row)
	}
	return resp
}

func describeSpec(ask *kmsg.DescribeConfigsRequestResource) admin.DescribeSpec {
	spec := admin.DescribeSpec{Resource: admin.Resource{Type: admin.ResourceType(ask.ResourceType), Name: ask.ResourceName}}
	if len(ask.ConfigNames) > 0 {
		spec.Keys = ask.ConfigNames
	}
	return spec
}

func fillDescribed(row *kmsg.DescribeConfigsResponseResource, r *admin.DescribeResult, o admin.DescribeOptions) {
	if r.Err != nil {
		row.ErrorCode, row.ErrorMessage = code(r.Err)
		return
	}
	for i := range r.Configs {
		from := &r.Configs[i]
		to := kmsg.NewDescribeConfigsResponseResourceConfig()
		to.Name, to.Value, to.ReadOnly, to.IsSensitive = from.Name, from.Value, from.ReadOnly, from.Sensitive
		to.Source, to.ConfigType = kmsg.ConfigSource(from.Source), kmsg.ConfigType(from.Type)
		if o.Documentation {
			to.Documentation = from.Documentation
		}
		for _, s := range from.Synonyms {
			synonym := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			synonym.Name, synonym.Value, synonym.Source = s.Name, s.Value, kmsg.ConfigSource(s.Source)
			to.ConfigSynonyms = append(to.ConfigSynonyms, synonym)
		}
		row.Configs = append(row.Configs, to)
	}
}
