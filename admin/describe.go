package admin

import (
	"context"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/config"
	"barnabas/zkstate"
)

// Telling effective values and where they come from. A value has synonyms: the places that could supply it, in the
// order of precedence: the topic, this broker's dynamic settings, those of all brokers, the file, the table of
// defaults. Kafka drops those that stand before the key's first own name, which hides a log.retention.hours from
// retention.ms even when it decides; scripts compare these lists, so the same is done here.

// DescribeConfigs tells effective values and where they come from.
func (a *Admin) DescribeConfigs(ctx context.Context, specs []DescribeSpec, o DescribeOptions) []DescribeResult {
	results := make([]DescribeResult, len(specs))
	broker, err := a.brokerValues(ctx)
	for i, spec := range specs {
		results[i].Resource = spec.Resource
		if err != nil {
			results[i].Err = unavailable(err)
			continue
		}
		all, err := a.describe(ctx, spec.Resource, broker, o)
		if err != nil {
			results[i].Err = unavailable(err)
			continue
		}
		for _, d := range all {
			if len(spec.Keys) == 0 || slices.Contains(spec.Keys, d.Name) {
				results[i].Configs = append(results[i].Configs, d)
			}
		}
	}
	return results
}

func (a *Admin) describe(ctx context.Context, r Resource, broker brokerValues, o DescribeOptions) ([]ConfigDescription, error) {
	switch r.Type {
	case ResourceTopic:
		if err := ValidateTopicName(r.Name); err != nil {
			return nil, err
		}
		there, err := a.exists(ctx, zkstate.TopicPath(r.Name))
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, kerr.UnknownTopicOrPartition
		}
		set, _, err := a.readConfig(ctx, zkstate.TopicEntity, r.Name)
		if err != nil {
			return nil, err
		}
		return a.describeTopic(set, broker, o), nil
	case ResourceBroker:
		name, err := a.brokerEntity(r.Name, "Broker id must be an integer, but it is: %s", "Unexpected broker id, expected %d or empty string, but received %s")
		if err != nil {
			return nil, err
		}
		if name == zkstate.DefaultEntity {
			return a.describeDefaultBroker(broker, o), nil
		}
		return a.describeBroker(broker, o), nil
	case ResourceBrokerLogger:
		return a.describeLoggers(r)
	case ResourceClientMetrics:
		if r.Name == "" {
			return nil, failed(kerr.InvalidRequest, "Client metrics subscription name must not be empty")
		}
		return nil, failed(kerr.InvalidRequest, "Config type client-metrics is only supported on KRaft clusters")
	}
	return nil, failed(kerr.InvalidRequest, "Unsupported resource type: %d", r.Type)
}

// brokerValues are the settings of this broker by source.
type brokerValues struct{ dynamic, dynamicDefault, static map[string]string }

func (a *Admin) brokerValues(ctx context.Context) (brokerValues, error) {
	var err error
	v := brokerValues{static: a.cfg.Table.Static()}
	if v.dynamic, _, err = a.readConfig(ctx, zkstate.BrokerEntity, strconv.Itoa(int(a.cfg.BrokerID))); err != nil {
		return v, err
	}
	v.dynamicDefault, _, err = a.readConfig(ctx, zkstate.BrokerEntity, zkstate.DefaultEntity)
	return v, err
}

// lookup is the value of a broker key: that of the place of highest precedence, else the default.
func lookup(key BrokerKey, v brokerValues) *string {
	for _, place := range []map[string]string{v.dynamic, v.dynamicDefault, v.static} {
		if value, ok := place[key.Name]; ok {
			return &value
		}
	}
	return key.Default
}

// synonyms lists the places that have a value for a broker key.
func (a *Admin) synonyms(name string, v brokerValues, sensitive bool) []Synonym {
	names := []string{name}
	if key, ok := a.describedKey(name); ok {
		names = key.Synonyms
	}
	var all []Synonym
	add := func(value string, name string, source ConfigSource) {
		s := Synonym{Name: name, Source: source}
		if !sensitive {
			s.Value = &value
		}
		all = append(all, s)
	}
	places := []struct {
		values map[string]string
		source ConfigSource
	}{{v.dynamic, SourceDynamicBroker}, {v.dynamicDefault, SourceDynamicDefaultBroker}, {v.static, SourceStaticBroker}}
	for _, p := range places {
		for _, n := range names {
			if value, ok := p.values[n]; ok {
				add(value, n, p.source)
			}
		}
	}
	for _, n := range names {
		if slices.Contains(authorizerKeys, n) {
			continue
		}
		if key, ok := a.cfg.Table.BrokerKey(n); ok && key.Name == n && key.Default != nil {
			if _, prefixed := listenerKey(n); !prefixed {
				add(*key.Default, n, SourceDefault)
			}
		}
	}
	for len(all) > 0 && all[0].Name != name {
		all = all[1:]
	}
	return all
}

func (a *Admin) describeTopic(set map[string]string, broker brokerValues, o DescribeOptions) []ConfigDescription {
	names := a.cfg.Table.TopicKeys()
	for name := range set {
		if !slices.Contains(names, name) {
			names = append(names, name) // set by a version that knew it, or by hand
		}
	}
	sort.Strings(names)
	out := make([]ConfigDescription, 0, len(names))
	for _, name := range names {
		key, known := a.cfg.Table.TopicKey(name)
		d := ConfigDescription{Name: name, Type: key.Type, Sensitive: !known || key.Type == TypePassword}
		value, isSet := set[name]
		if !isSet {
			value = a.topicDefault(key, broker)
		}
		if !d.Sensitive {
			value = canonical(key.Type, value)
			d.Value = &value
		}
		var all []Synonym
		if isSet {
			all = append(all, Synonym{Name: name, Value: d.Value, Source: SourceTopic})
		}
		if len(key.ServerKeys) > 0 {
			all = append(all, a.synonyms(key.ServerKeys[0].Name, broker, d.Sensitive)...)
		}
		out = append(out, a.finish(d, all, key.Doc, o))
	}
	return out
}

// topicDefault is what a topic has that does not set the key: the first broker key that is set in the place of
// highest precedence, else the table's default.
func (a *Admin) topicDefault(key TopicKey, broker brokerValues) string {
	for _, place := range []map[string]string{broker.dynamic, broker.dynamicDefault, broker.static} {
		for _, s := range key.ServerKeys {
			if value, ok := place[s.Name]; ok && value != "" {
				if s.Convert != nil {
					value = s.Convert(value)
				}
				return value
			}
		}
	}
	if key.Default == nil {
		return ""
	}
	return *key.Default
}

func (a *Admin) finish(d ConfigDescription, all []Synonym, doc string, o DescribeOptions) ConfigDescription {
	d.Source = SourceDefault
	if len(all) > 0 {
		d.Source = all[0].Source
	}
	if o.Synonyms {
		d.Synonyms = all
	}
	if o.Documentation && doc != "" {
		d.Documentation = &doc
	}
	return d
}

func (a *Admin) describeBroker(v brokerValues, o DescribeOptions) []ConfigDescription {
	names := slices.DeleteFunc(a.cfg.Table.BrokerKeys(), func(name string) bool { return slices.Contains(authorizerKeys, name) })
	for _, place := range []map[string]string{v.dynamic, v.dynamicDefault, v.static} {
		for name := range place {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	sort.Strings(names)
	out := make([]ConfigDescription, 0, len(names))
	for _, name := range names {
		out = append(out, a.describeBrokerKey(name, v, o, false))
	}
	return out
}

func (a *Admin) describeDefaultBroker(v brokerValues, o DescribeOptions) []ConfigDescription {
	var out []ConfigDescription
	for _, name := range keysInOrder(v.dynamicDefault, nil) {
		out = append(out, a.describeBrokerKey(name, v, o, true))
	}
	return out
}

// authorizerKeys are those that only an authorizer reads: Kafka's table does not have them, so that it tells of them as of any key that it does not know.
var authorizerKeys = []string{"allow.everyone.if.no.acl.found", "super.users"}

// describedKey is what is told of a broker key.
func (a *Admin) describedKey(name string) (BrokerKey, bool) {
	if slices.Contains(authorizerKeys, name) {
		return BrokerKey{}, false
	}
	return a.brokerKey(name)
}

func (a *Admin) describeBrokerKey(name string, v brokerValues, o DescribeOptions, defaultsOnly bool) ConfigDescription {
	key, known := a.describedKey(name)
	d := ConfigDescription{Name: name, Type: key.Type, Sensitive: !known || key.Type == TypePassword}
	_, quota := quotaKeys[name]
	_, prefixed := listenerKey(name)
	// Kafka's list of dynamic keys has neither the quotas nor prefixed names.
	d.ReadOnly = !known || key.Mode == ReadOnly || quota || prefixed
	if !d.Sensitive {
		value := lookup(key, v)
		if defaultsOnly {
			set := v.dynamicDefault[name]
			value = &set
		}
		d.Value = value
	}
	all := a.synonyms(name, v, d.Sensitive)
	if defaultsOnly {
		all = slices.DeleteFunc(all, func(s Synonym) bool { return s.Source != SourceDynamicDefaultBroker })
	}
	return a.finish(d, all, key.Doc, o)
}

// canonical writes a value as Kafka shows it after parsing.
func canonical(t ConfigType, value string) string {
	trimmed := strings.TrimSpace(value)
	switch t {
	case TypeBoolean:
		return strings.ToLower(trimmed)
	case TypeInt, TypeShort, TypeLong:
		if n, err := strconv.ParseInt(trimmed, 10, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
	case TypeDouble:
		if f, err := config.ParseDouble(trimmed); err == nil {
			return config.FormatDouble(f)
		}
	case TypeList:
		parts := strings.Split(trimmed, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return strings.Join(parts, ",")
	}
	return value
}
