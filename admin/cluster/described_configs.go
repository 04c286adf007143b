package cluster

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribedSetting is a setting of a topic or a broker with all that its broker tells of it.
type DescribedSetting struct {
	Name      string
	Value     *string // nil: not told, as with passwords, or not set
	Source    kmsg.ConfigSource
	ReadOnly  bool // cannot be changed while the broker runs
	Sensitive bool
	Type      string // as LONG; "" where the broker does not tell
	Doc       string // likewise
	Synonyms  []SettingSource
}

// SettingSource is one of the places a setting comes from, the one that counts first.
type SettingSource struct {
	Name   string
	Value  *string
	Source kmsg.ConfigSource
}

// Own tells whether the setting was given to this topic or broker itself.
func (s DescribedSetting) Own() bool {
	return s.Source == kmsg.ConfigSourceDynamicTopicConfig || s.Source == kmsg.ConfigSourceDynamicBrokerConfig
}

// IsDefault tells whether nobody has set it.
func (s DescribedSetting) IsDefault() bool { return s.Source == kmsg.ConfigSourceDefaultConfig }

// TopicConfig describes all settings that hold for a topic, in the broker's order.
func (c *Cluster) TopicConfig(ctx context.Context, topic string) ([]DescribedSetting, error) {
	return describeConfig(ctx, c.client, kmsg.ConfigResourceTypeTopic, topic)
}

// BrokerConfig describes all settings of a broker, by its own word.
func (c *Cluster) BrokerConfig(ctx context.Context, id int32) ([]DescribedSetting, error) {
	return describeConfig(ctx, c.client.Broker(int(id)), kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(id)))
}

// ClientMetricsConfig describes the settings of one of the things that clients push metrics for (KIP-714); a cluster on ZooKeeper has none.
func (c *Cluster) ClientMetricsConfig(ctx context.Context, name string) ([]DescribedSetting, error) {
	return describeConfig(ctx, c.client, kmsg.ConfigResourceTypeClientMetrics, name)
}

func describeConfig(ctx context.Context, via kmsg.Requestor, kind kmsg.ConfigResourceType, name string) ([]DescribedSetting, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms, req.IncludeDocumentation = true, true
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	req.Resources = append(req.Resources, r)
	resp, err := req.RequestWith(ctx, via)
	if err != nil {
		return nil, err
	}
	var list []DescribedSetting
	for _, r := range resp.Resources {
		if err := Answered(r.ErrorCode, r.ErrorMessage); err != nil {
			return nil, err
		}
		for _, s := range r.Configs {
			one := DescribedSetting{Name: s.Name, Value: s.Value, Source: s.Source, ReadOnly: s.ReadOnly, Sensitive: s.IsSensitive}
			if s.ConfigType != 0 {
				one.Type = s.ConfigType.String()
			}
			if s.Documentation != nil {
				one.Doc = *s.Documentation
			}
			for _, from := range s.ConfigSynonyms {
				one.Synonyms = append(one.Synonyms, SettingSource{from.Name, from.Value, from.Source})
			}
			list = append(list, one)
		}
	}
	return list, nil
}
