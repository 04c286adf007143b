package tools

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/cluster"
)

// configsByBroker asks brokers, as --bootstrap-server wants it. Settings of topics and brokers are here, those of clients, users and addresses in quotas_by_broker.go.
type configsByBroker struct {
	f      face
	client *kgo.Client
}

func (s *configsByBroker) close() { s.client.Close() }

// configResource is how the protocol names an entity of a type, and from where settings of its own come; loggers have nothing else.
func configResource(entityType, name string) (kmsg.ConfigResourceType, kmsg.ConfigSource) {
	switch {
	case entityType == topicsType:
		return kmsg.ConfigResourceTypeTopic, kmsg.ConfigSourceDynamicTopicConfig
	case entityType == loggersType:
		return kmsg.ConfigResourceTypeBrokerLogger, kmsg.ConfigSourceUnknown
	case name == "":
		return kmsg.ConfigResourceTypeBroker, kmsg.ConfigSourceDynamicDefaultBrokerConfig
	}
	return kmsg.ConfigResourceTypeBroker, kmsg.ConfigSourceDynamicBrokerConfig
}

func (s *configsByBroker) describe(a configsAsked) error {
	if a.types[0] == usersType || a.types[0] == clientsType || a.types[0] == ipsType {
		return s.describeQuotas(a)
	}
	names := a.names
	if len(names) == 0 {
		var err error
		if names, err = s.allOf(a.types[0]); err != nil {
			return err
		}
	}
	for _, name := range names {
		singular := strings.TrimSuffix(a.types[0], "s")
		switch {
		case name == "":
			fmt.Fprintf(s.f.stdout, "Default configs for %s in the cluster are:\n", a.types[0])
		case a.all:
			fmt.Fprintf(s.f.stdout, "All configs for %s %s are:\n", singular, name)
		default:
			fmt.Fprintf(s.f.stdout, "Dynamic configs for %s %s are:\n", singular, name)
		}
		entries, err := s.settings(a.types[0], name, a.all)
		if err != nil {
			return err
		}
		for _, e := range entries {
			fmt.Fprintln(s.f.stdout, settingLine(e))
		}
	}
	return nil
}

// settingLine shows a setting with all places that say something about it, the one that counts first.
func settingLine(e kmsg.DescribeConfigsResponseResourceConfig) string {
	synonyms := make([]string, len(e.ConfigSynonyms))
	for i, synonym := range e.ConfigSynonyms {
		synonyms[i] = fmt.Sprintf("%s:%s=%s", synonym.Source, synonym.Name, orNull(synonym.Value))
	}
	return fmt.Sprintf("  %s=%s sensitive=%t synonyms={%s}", e.Name, orNull(e.Value), e.IsSensitive, strings.Join(synonyms, ", "))
}

func orNull(text *string) string {
	if text == nil {
		return "null"
	}
	return *text
}

// allOf names all topics, or all brokers and their defaults.
func (s *configsByBroker) allOf(entityType string) ([]string, error) {
	resp, err := kmsg.NewPtrMetadataRequest().RequestWith(context.Background(), s.client)
	if err != nil {
		return nil, err
	}
	var names []string
	if entityType == topicsType {
		for _, t := range resp.Topics {
			if t.Topic != nil {
				names = append(names, *t.Topic)
			}
		}
		sort.Strings(names)
		return names, nil
	}
	sort.Slice(resp.Brokers, func(i, j int) bool { return resp.Brokers[i].NodeID < resp.Brokers[j].NodeID })
	for _, b := range resp.Brokers {
		names = append(names, strconv.Itoa(int(b.NodeID)))
	}
	return append(names, ""), nil
}

// settings reads an entity's own settings, or all that hold for it, by name.
func (s *configsByBroker) settings(entityType, name string, all bool) ([]kmsg.DescribeConfigsResponseResourceConfig, error) {
	kind, own := configResource(entityType, name)
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Resources, req.IncludeSynonyms = append(req.Resources, r), true
	resp, err := req.RequestWith(context.Background(), s.client)
	if err != nil {
		return nil, err
	}
	var entries []kmsg.DescribeConfigsResponseResourceConfig
	for _, r := range resp.Resources {
		if err := answered(r.ErrorCode, r.ErrorMessage); err != nil {
			return nil, err
		}
		for _, e := range r.Configs {
			if all || entityType == loggersType || e.Source == own {
				entries = append(entries, e)
			}
		}
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	return entries, nil
}

func (s *configsByBroker) alter(a configsAsked) error {
	var err error
	if a.types[0] == topicsType || a.types[0] == brokersType || a.types[0] == loggersType {
		err = s.alterSettings(a)
	} else {
		err = s.alterQuotas(a)
	}
	if err != nil {
		return err
	}
	if a.names[0] == "" {
		fmt.Fprintf(s.f.stdout, "Completed updating default config for %s in the cluster.\n", a.types[0])
	} else {
		fmt.Fprintf(s.f.stdout, "Completed updating config for %s %s.\n", strings.TrimSuffix(a.types[0], "s"), a.names[0])
	}
	return nil
}

func (s *configsByBroker) alterSettings(a configsAsked) error {
	existing, err := s.settings(a.types[0], a.names[0], false)
	if err != nil {
		return err
	}
	has := func(key string) bool {
		return slices.ContainsFunc(existing, func(e kmsg.DescribeConfigsResponseResourceConfig) bool { return e.Name == key })
	}
	if a.types[0] == loggersType {
		var unknown []string
		for _, key := range append(slices.Clone(a.remove), keysOf(a.add)...) {
			if !has(key) {
				unknown = append(unknown, key)
			}
		}
		if unknown != nil {
			return &badArgument{"Invalid broker logger(s): " + strings.Join(unknown, ",")}
		}
	}
	if err := missingSettings(a.remove, has); err != nil {
		return err
	}
	kind, _ := configResource(a.types[0], a.names[0])
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, a.names[0]
	for _, add := range a.add {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = add.key, kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr(add.value)
		r.Configs = append(r.Configs, c)
	}
	for _, key := range a.remove {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = key, kmsg.IncrementalAlterConfigOpDelete, kmsg.StringPtr("")
		r.Configs = append(r.Configs, c)
	}
	return cluster.New(s.client).AlterConfigs(context.Background(), false, r)
}

func keysOf(settings []setting) []string {
	keys := make([]string, len(settings))
	for i, s := range settings {
		keys[i] = s.key
	}
	return keys
}
