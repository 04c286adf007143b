package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
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

// quotaTypes are the protocol's names of what has quotas.
var quotaTypes = map[string]string{"user": "user", "client": "client-id"}

// Quotas are those of a user or a client alone, nil for all that have none of their own, by name.
func (c *Cluster) Quotas(ctx context.Context, kind string, name *string) (map[string]float64, error) {
	asked := kadm.DescribeClientQuotaComponent{Type: quotaTypes[kind], MatchName: name, MatchType: kmsg.QuotasMatchTypeExact}
	if name == nil {
		asked.MatchType = kmsg.QuotasMatchTypeDefault
	}
	list, err := c.admin.DescribeClientQuotas(ctx, true, []kadm.DescribeClientQuotaComponent{asked})
	if err != nil {
		return nil, err
	}
	quotas := map[string]float64{}
	for _, q := range list {
		for _, v := range q.Values {
			quotas[v.Key] = v.Value
		}
	}
	return quotas, nil
}

// AlterQuotas sets quotas of a user or a client alone, and takes back those that are nil; or, with validateOnly, tells whether that would be done.
func (c *Cluster) AlterQuotas(ctx context.Context, kind string, name *string, quotas map[string]*float64, validateOnly bool) error {
	entry := kadm.AlterClientQuotaEntry{Entity: kadm.ClientQuotaEntity{{Type: quotaTypes[kind], Name: name}}}
	for _, key := range slices.Sorted(maps.Keys(quotas)) {
		op := kadm.AlterClientQuotaOp{Key: key, Remove: quotas[key] == nil}
		if !op.Remove {
			op.Value = *quotas[key]
		}
		entry.Ops = append(entry.Ops, op)
	}
	alter := c.admin.AlterClientQuotas
	if validateOnly {
		alter = c.admin.ValidateAlterClientQuotas
	}
	results, err := alter(ctx, []kadm.AlterClientQuotaEntry{entry})
	if err != nil {
		return err
	}
	var failures []error
	for _, r := range results {
		if r.Err != nil && r.ErrMessage != "" {
			failures = append(failures, &worded{r.ErrMessage, r.Err})
		} else {
			failures = append(failures, r.Err)
		}
	}
	return errors.Join(failures...)
}

// worded is an error in a broker's own words.
type worded struct {
	text string
	err  error
}

func (e *worded) Error() string { return e.text }
func (e *worded) Unwrap() error { return e.err }
