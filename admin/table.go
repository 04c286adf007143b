package admin

// ConfigType is the protocol's type of a configuration value (DescribeConfigs version 3).
type ConfigType int8

// The types of values.
const (
	TypeUnknown ConfigType = iota
	TypeBoolean
	TypeString
	TypeInt
	TypeShort
	TypeLong
	TypeDouble
	TypeList
	TypeClass
	TypePassword
)

// UpdateMode says where a broker key may be changed while the broker runs (KIP-226).
type UpdateMode int8

// The modes: ReadOnly only in the file; PerBroker for one broker at a time; ClusterWide for one or for all.
const (
	ReadOnly UpdateMode = iota
	PerBroker
	ClusterWide
)

// TopicKey describes one topic-level configuration.
type TopicKey struct {
	Name    string
	Type    ConfigType
	Default *string
	// ServerKeys are the broker keys that supply a topic's default, the first having precedence: log.retention.ms,
	// log.retention.minutes, log.retention.hours. Each converts its value to the topic key's unit.
	ServerKeys []ServerKey
	Doc        string
}

// ServerKey is a broker key that supplies the default of a topic key.
type ServerKey struct {
	Name string
	// Convert turns the broker key's value into the topic key's unit; nil when they are the same.
	Convert func(value string) string
}

// BrokerKey describes one broker configuration.
type BrokerKey struct {
	Name     string
	Type     ConfigType
	Default  *string
	Mode     UpdateMode
	Synonyms []string // other keys that stand for it, in the order of precedence, itself included
	Doc      string
}

// ConfigTable is what this package needs to know of the configuration; package config has the facts.
type ConfigTable interface {
	// TopicKey looks up a topic-level key, TopicKeys lists them sorted by name.
	TopicKey(name string) (TopicKey, bool)
	TopicKeys() []string
	// CheckTopic judges one value of a topic key, with Kafka's words: "Invalid value x for configuration
	// retention.ms: Not a number of type LONG".
	CheckTopic(name, value string) error
	// CheckTopicTogether judges the whole configuration of a topic (keys that contradict each other), the broker's
	// defaults included. Its error has a code (INVALID_CONFIG) where Kafka gives the text alone, and none where Kafka
	// names the resource before it.
	CheckTopicTogether(configs map[string]string) error
	// BrokerKey looks up a broker key, BrokerKeys lists them sorted by name; keys with a listener's prefix
	// (listener.name.NAME.KEY) are looked up by their whole name.
	BrokerKey(name string) (BrokerKey, bool)
	BrokerKeys() []string
	// CheckBroker judges one value of a broker key.
	CheckBroker(name, value string) error
	// Static is what the configuration file and the command line of this broker say, by key.
	Static() map[string]string
}
