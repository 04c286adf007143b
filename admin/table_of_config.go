package admin

import (
	"errors"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

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

// CheckTopicTogether refuses a record held back from compaction for longer than it may stay uncompacted, and tiered
// storage, which this broker does not have.
func (t configTable) CheckTopicTogether(configs map[string]string) error {
	text := func(name string) string {
		if value, ok := configs[name]; ok {
			return strings.TrimSpace(value)
		}
		value, _ := t.static.TopicDefault(name)
		return value
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(text(name), 10, 64)
		return n
	}
	if low, high := number("min.compaction.lag.ms"), number("max.compaction.lag.ms"); low > high {
		return failed(kerr.InvalidConfig, "conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)", low, high)
	}
	on := func(name string) bool { return strings.EqualFold(text(name), "true") }
	if on("remote.log.delete.on.disable") || on("remote.log.copy.disable") {
		return failed(kerr.InvalidConfig, "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under Zookeeper's mode.")
	}
	if on("remote.storage.enable") {
		return errors.New("Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.") // Kafka's words
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
