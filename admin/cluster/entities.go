package cluster

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DefaultBrokerConfig describes what was set for all brokers while they run.
func (c *Cluster) DefaultBrokerConfig(ctx context.Context) ([]DescribedSetting, error) {
	return describeConfig(ctx, c.client, kmsg.ConfigResourceTypeBroker, "")
}

// AlterEntity changes settings of a topic or of a broker, "" for all brokers, all or none; or, with validateOnly, tells whether that would be done.
func (c *Cluster) AlterEntity(ctx context.Context, topic bool, name string, set []Setting, remove []string, validateOnly bool) error {
	if topic {
		return c.AlterTopicConfig(ctx, name, set, remove, validateOnly)
	}
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeBroker, name
	for _, s := range set {
		r.Configs = append(r.Configs, Change(s.Name, &s.Value))
	}
	for _, key := range remove {
		r.Configs = append(r.Configs, Change(key, nil))
	}
	return c.AlterConfigs(ctx, validateOnly, r)
}
