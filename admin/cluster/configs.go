package cluster

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// AlterConfigs changes settings of topics and brokers, or, with validateOnly, tells whether that would be done; each broker's go to that broker.
func (c *Cluster) AlterConfigs(ctx context.Context, validateOnly bool, resources ...kmsg.IncrementalAlterConfigsRequestResource) error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources, req.ValidateOnly = resources, validateOnly
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return err
	}
	for _, r := range resp.Resources {
		if err := Answered(r.ErrorCode, r.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

// AlterTopicConfig sets and takes back settings of a topic.
func (c *Cluster) AlterTopicConfig(ctx context.Context, topic string, set []Setting, remove []string, validateOnly bool) error {
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for _, s := range set {
		r.Configs = append(r.Configs, Change(s.Name, &s.Value))
	}
	for _, name := range remove {
		r.Configs = append(r.Configs, Change(name, nil))
	}
	return c.AlterConfigs(ctx, validateOnly, r)
}

// Change is one setting to set, or with no value to take back.
func Change(name string, value *string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
	change := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	if change.Name, change.Op = name, kmsg.IncrementalAlterConfigOpDelete; value != nil {
		change.Op, change.Value = kmsg.IncrementalAlterConfigOpSet, value
	}
	return change
}

// ownBrokerSettings are the settings that were given to a broker, or to all of them, while it runs, by its own word.
func (c *Cluster) ownBrokerSettings(ctx context.Context, id int32) ([]Setting, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(id))
	req.Resources = append(req.Resources, r)
	resp, err := req.RequestWith(ctx, c.client.Broker(int(id)))
	if err != nil {
		return nil, err
	}
	var settings []Setting
	for _, r := range resp.Resources {
		if err := Answered(r.ErrorCode, r.ErrorMessage); err != nil {
			return nil, err
		}
		for _, s := range r.Configs {
			given := s.Source == kmsg.ConfigSourceDynamicBrokerConfig || s.Source == kmsg.ConfigSourceDynamicDefaultBrokerConfig
			if given && s.Value != nil {
				settings = append(settings, Setting{s.Name, *s.Value})
			}
		}
	}
	return settings, nil
}
