package admin

import (
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Which broker settings may be changed while the broker runs (KIP-226): some for all brokers, some only for one at a
// time, those of security only behind a listener's prefix, most not at all. Keys that nobody knows pass, since
// they may be a plug-in's.

// quotaKeys are broker keys that exist only as dynamic settings; no file has them.
var quotaKeys = map[string]string{
	"leader.replication.throttled.rate":              "Bytes per second that this broker sends, as leader, to the replicas listed in leader.replication.throttled.replicas.",
	"follower.replication.throttled.rate":            "Bytes per second that this broker fetches, as follower, for the replicas listed in follower.replication.throttled.replicas.",
	"replica.alter.log.dirs.io.max.bytes.per.second": "Bytes per second for moving replicas between this broker's log directories.",
}

const quotaDefault = "9223372036854775807"

// brokerKey looks up a broker key, those included that exist only as dynamic settings.
func (a *Admin) brokerKey(name string) (BrokerKey, bool) {
	if doc, ok := quotaKeys[name]; ok {
		def := quotaDefault
		return BrokerKey{Name: name, Type: TypeLong, Default: &def, Mode: ClusterWide, Synonyms: []string{name}, Doc: doc}, true
	}
	return a.cfg.Table.BrokerKey(name)
}

// listenerKey takes a listener's prefix off a key.
func listenerKey(name string) (base string, prefixed bool) {
	rest, ok := strings.CutPrefix(name, "listener.name.")
	if !ok {
		return name, false
	}
	if _, base, ok = strings.Cut(rest, "."); !ok {
		return name, false
	}
	return base, true
}

// clusterWideOnListeners are the only keys behind a listener's prefix that may be set for all brokers at once.
var clusterWideOnListeners = []string{"max.connections", "max.connection.creation.rate", "num.network.threads"}

// connectionLimits hold for listeners, those that have none of their own included.
var connectionLimits = []string{"max.connections", "max.connection.creation.rate"}

// invalidTogether is how Kafka says that a broker cannot live with settings that are legal one by one.
func invalidTogether(why string) error {
	return failed(kerr.InvalidRequest, "Invalid value %s for configuration Invalid dynamic configuration", why)
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64) // the table has checked it
	return n
}

// storeKeys are the settings of key stores and trust stores, which change while the broker runs behind a listener's prefix only.
var storeKeys = []string{"ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type",
	"ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type"}

// validateBroker judges a broker's whole dynamic configuration, or the default of all brokers. stored is what stands there.
func (a *Admin) validateBroker(r Resource, configs, stored map[string]string) error {
	refuse := func(names []string, why, set string) error {
		if len(names) == 0 {
			return nil
		}
		return failed(kerr.InvalidRequest, "%s: %s(%s)", why, set, strings.Join(names, ", "))
	}
	var readOnly, bare, perBroker []string
	names := keysInOrder(configs, nil)
	for _, name := range names {
		base, prefixed := listenerKey(name)
		key, known := a.brokerKey(name)
		switch {
		case known && !prefixed && key.Mode == ReadOnly:
			readOnly = append(readOnly, name)
		case slices.Contains(storeKeys, name):
			bare = append(bare, name)
		case known && !prefixed && key.Mode == PerBroker, prefixed && !slices.Contains(clusterWideOnListeners, base):
			perBroker = append(perBroker, name)
		}
	}
	if err := refuse(readOnly, "Cannot update these configs dynamically", "Set"); err != nil {
		return err
	}
	if err := refuse(bare, "These security configs can be dynamically updated only per-listener using the listener prefix", "HashSet"); err != nil {
		return err
	}
	for _, name := range names {
		if err := a.checkBroker(name, configs[name]); err != nil {
			return failed(kerr.InvalidRequest, "%s", err.Error())
		}
	}
	for _, name := range names {
		// In a file a limit of none is legal; to set it while the broker runs would shut everybody out.
		if base, _ := listenerKey(name); slices.Contains(connectionLimits, base) && number(configs[name]) <= 0 {
			return invalidTogether("org.apache.kafka.common.config.ConfigException: Invalid " + base + " " + configs[name])
		}
	}
	if r.Name == "" {
		if err := refuse(perBroker, "Cannot update these configs at default cluster level, broker id must be specified", "Set"); err != nil {
			return err
		}
	}
	for _, name := range names {
		if key, known := a.brokerKey(name); known && key.Mode == ReadOnly {
			if err := a.cfg.Table.CheckBroker(name, configs[name]); err != nil {
				return invalidTogether("org.apache.kafka.common.config.ConfigException: " + err.Error())
			}
		}
	}
	if err := a.judge(r, configs, stored); err != nil {
		return err
	}
	if len(changedPasswords(configs, stored)) > 0 && a.cfg.Passwords == nil {
		return failed(kerr.InvalidConfig, "Invalid config value for resource %v: Password encoder secret not configured", r)
	}
	return nil
}

// checkBroker judges one value. What may not change while the broker runs and stands behind a listener's prefix nevertheless is looked at only with all the rest.
func (a *Admin) checkBroker(name, value string) error {
	if _, ok := quotaKeys[name]; ok {
		return checkAtLeastZero(name, value)
	}
	if key, known := a.brokerKey(name); known && key.Mode == ReadOnly {
		return nil
	}
	return a.cfg.Table.CheckBroker(name, value)
}
