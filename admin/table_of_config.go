package admin

import (
	"strconv"

	"barnabas/config"
)

// NewConfigTable joins the tables of package config and a broker's static configuration.
func NewConfigTable(static *config.Values) ConfigTable { return configTable{static} }

type configTable struct{ static *config.Values }

// configTypes maps the table's types to the protocol's numbers.
var configTypes = map[config.Type]ConfigType{config.Boolean: TypeBoolean, config.String: TypeString, config.Int: TypeInt, config.Short: TypeShort, config.Long: TypeLong,
	config.Double: TypeDouble, config.List: TypeList, config.Class: TypeClass, config.Password: TypePassword}

func (t configTable) TopicKey(name string) (TopicKey, bool) {
	k := config.Topic.Lookup(name)
	if k == nil {
		return TopicKey{}, false
	}
	key := TopicKey{Name: k.Name, Type: configTypes[k.Type], Default: k.Default, Doc: k.Doc}
	for _, s := range k.Synonyms {
		server := ServerKey{Name: s.Name}
		if s.Factor != 0 {
			server.Convert = s.Convert
		}
		key.ServerKeys = append(key.ServerKeys, server)
	}
	return key, true
}

func (t configTable) TopicKeys() []string { return names(config.Topic) }

func (t configTable) CheckTopic(name, value string) error {
	return config.Topic.Lookup(name).Check(value)
}

// CheckTopicTogether holds the one rule between keys of a topic that Kafka has beside tiered storage's: a record may not be held back from compaction for longer than it may
// stay uncompacted.
func (t configTable) CheckTopicTogether(configs map[string]string) error {
	value := func(name string) int64 {
		text, ok := configs[name]
		if !ok {
			text, _ = t.static.TopicDefault(name)
		}
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	if low, high := value("min.compaction.lag.ms"), value("max.compaction.lag.ms"); low > high {
		return &config.InvalidError{Name: "max.compaction.lag.ms", Value: strconv.FormatInt(high, 10),
			Reason: "conflict with topic config setting min.compaction.lag.ms (" + strconv.FormatInt(low, 10) + ") > max.compaction.lag.ms (" + strconv.FormatInt(high, 10) + ")"}
	}
	return nil
}

func (t configTable) BrokerKey(name string) (BrokerKey, bool) {
	k := config.LookupBroker(name)
	if k == nil {
		return BrokerKey{}, false
	}
	return BrokerKey{Name: name, Type: configTypes[k.Type], Default: k.Default, Mode: UpdateMode(k.Update), Synonyms: config.BrokerSynonyms(name), Doc: k.Doc}, true
}

func (t configTable) BrokerKeys() []string { return names(config.Broker) }

func (t configTable) CheckBroker(name, value string) error {
	k := config.LookupBroker(name)
	if k == nil {
		return nil // Kafka lets unknown broker keys pass: they may be a plug-in's
	}
	return k.Check(value)
}

func (t configTable) Static() map[string]string {
	set := map[string]string{}
	for _, name := range t.static.Names() {
		set[name], _ = t.static.Lookup(name)
	}
	return set
}

// names lists the keys that are shown to users.
func names(table config.Table) []string {
	var list []string
	for _, k := range table.Keys() {
		if !k.Internal && !k.Retired {
			list = append(list, k.Name)
		}
	}
	return list
}
