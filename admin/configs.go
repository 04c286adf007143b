package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/zkstate"
)

// Changing configurations. A change is judged as a whole before anything is written, then written as the entity's
// complete configuration with a notification. AlterConfigs replaces the configuration, IncrementalAlterConfigs edits
// the one that is there.

// String is how Kafka's messages show a resource.
func (r Resource) String() string {
	kind := map[ResourceType]string{ResourceTopic: "TOPIC", ResourceBroker: "BROKER", ResourceBrokerLogger: "BROKER_LOGGER", ResourceClientMetrics: "CLIENT_METRICS"}[r.Type]
	if kind == "" {
		kind = "UNKNOWN"
	}
	return fmt.Sprintf("ConfigResource(type=%s, name='%s')", kind, r.Name)
}

// AlterConfigs replaces configurations of topics and brokers.
func (a *Admin) AlterConfigs(ctx context.Context, specs []AlterSpec, validateOnly bool) []AlterResult {
	results := make([]AlterResult, len(specs))
	for i, spec := range specs {
		change := func(map[string]string) (map[string]string, []string, error) {
			configs, order, err := setAll(spec.Configs)
			return configs, order, err
		}
		results[i] = AlterResult{Resource: spec.Resource, Err: unavailable(a.alter(ctx, spec.Resource, change, validateOnly))}
	}
	return results
}

// IncrementalAlterConfigs changes single keys of configurations of topics and brokers.
func (a *Admin) IncrementalAlterConfigs(ctx context.Context, specs []IncrementalSpec, validateOnly bool) []AlterResult {
	results := make([]AlterResult, len(specs))
	for i, spec := range specs {
		if spec.Resource.Type == ResourceBrokerLogger {
			results[i] = AlterResult{Resource: spec.Resource, Err: a.alterLoggers(spec, validateOnly)}
			continue
		}
		change := func(existing map[string]string) (map[string]string, []string, error) {
			order, err := a.apply(spec, existing)
			return existing, order, err
		}
		results[i] = AlterResult{Resource: spec.Resource, Err: unavailable(a.alter(ctx, spec.Resource, change, validateOnly))}
	}
	return results
}

// configMap is a list of settings as a map, with the order in which its keys came; a null value is left out.
func configMap(entries []ConfigEntry) (configs map[string]string, order []string) {
	configs = make(map[string]string, len(entries))
	for _, c := range entries {
		if c.Value != nil {
			configs[c.Name] = *c.Value
			order = append(order, c.Name)
		}
	}
	return configs, order
}

func setAll(entries []ConfigEntry) (map[string]string, []string, error) {
	seen := map[string]bool{}
	var nulls []string
	for _, c := range entries {
		if seen[c.Name] {
			return nil, nil, failed(kerr.InvalidRequest, "Error due to duplicate config keys")
		}
		seen[c.Name] = true
		if c.Value == nil {
			nulls = append(nulls, c.Name)
		}
	}
	if len(nulls) > 0 {
		return nil, nil, failed(kerr.InvalidRequest, "Null value not supported for : %s", strings.Join(nulls, ", "))
	}
	configs, order := configMap(entries)
	return configs, order, nil
}

// apply edits a configuration and says in which order new keys came.
func (a *Admin) apply(spec IncrementalSpec, configs map[string]string) (order []string, err error) {
	asEntries := make([]ConfigEntry, len(spec.Ops))
	for i, op := range spec.Ops {
		asEntries[i] = ConfigEntry{Name: op.Name, Value: op.Value}
		if op.Op == OpDelete {
			asEntries[i].Value = new(string) // needs none
		}
	}
	if _, _, err := setAll(asEntries); err != nil {
		return nil, err
	}
	for _, op := range spec.Ops {
		switch op.Op {
		case OpSet:
			configs[op.Name] = *op.Value
			order = append(order, op.Name)
		case OpDelete:
			delete(configs, op.Name)
		case OpAppend, OpSubtract:
			list, err := a.listOf(spec.Resource, op, configs)
			if err != nil {
				return nil, err
			}
			configs[op.Name] = strings.Join(editList(op.Op, list, splitItems(*op.Value)), ",")
			order = append(order, op.Name)
		default:
			if spec.Resource.Type == ResourceTopic {
				return nil, kerr.UnknownServerError
			}
			return nil, failed(kerr.InvalidRequest, "Unknown operations type %d", op.Op)
		}
	}
	return order, nil
}

// listOf is the list that an append or subtract starts from: the one that is set, or the key's default.
func (a *Admin) listOf(r Resource, op ConfigOp, configs map[string]string) ([]string, error) {
	var kind ConfigType
	var def *string
	var known bool
	if r.Type == ResourceTopic {
		var k TopicKey
		k, known = a.cfg.Table.TopicKey(op.Name)
		kind, def = k.Type, k.Default
	} else {
		var k BrokerKey
		k, known = a.cfg.Table.BrokerKey(op.Name)
		kind, def = k.Type, k.Default
	}
	verb := map[OpType]string{OpAppend: "append", OpSubtract: "subtract"}[op.Op]
	switch {
	case !known: // Kafka's lookup of the key throws
		return nil, kerr.UnknownServerError
	case kind != TypeList:
		return nil, failed(kerr.InvalidConfig, "Config value %s is not allowed for config key: %s", verb, op.Name)
	}
	value, set := configs[op.Name]
	if !set && def != nil {
		value = *def
	}
	if value == "" {
		return nil, nil
	}
	return strings.Split(value, ","), nil
}

// splitItems are those of a list as an append or subtract gives it: empty ones at its end are none, as with Java's split.
func splitItems(value string) []string {
	list := strings.Split(value, ",")
	for len(list) > 0 && list[len(list)-1] == "" && value != "" {
		list = list[:len(list)-1]
	}
	return list
}

// editList adds items that the list does not hold yet, or takes items out of it. What is given twice is added twice, as by Kafka.
func editList(op OpType, list, items []string) []string {
	if op == OpSubtract {
		return slices.DeleteFunc(list, func(s string) bool { return slices.Contains(items, s) })
	}
	fresh := slices.DeleteFunc(slices.Clone(items), func(s string) bool { return slices.Contains(list, s) })
	return append(list, fresh...)
}

// alter applies one change to one resource. change gets the configuration that is there and answers the new one.
func (a *Admin) alter(ctx context.Context, r Resource, change func(map[string]string) (map[string]string, []string, error), validateOnly bool) error {
	entityType, name, missing := a.entityOf(ctx, r)
	if missing != nil && r.Type != ResourceTopic {
		return missing
	}
	stored, order := map[string]string{}, []string(nil)
	if missing == nil {
		var err error
		if stored, order, err = a.readConfig(ctx, entityType, name); err != nil {
			return err
		}
	}
	configs, added, err := change(maps.Clone(stored))
	if err != nil && (missing == nil || r.Name != "") { // a change that no topic could have is refused before anybody looks whether there is such a topic
		return err
	}
	if missing != nil {
		return missing
	}
	if r.Type == ResourceTopic {
		if err := invalidFor(r, a.checkTopicConfigs(configs, added)); err != nil {
			return err
		}
	} else if err := a.validateBroker(r, configs, stored); err != nil {
		return err
	}
	if validateOnly {
		return nil
	}
	if r.Type == ResourceBroker {
		if err := a.encrypt(configs, stored); err != nil {
			return err
		}
	}
	return a.zk.SetEntityConfig(ctx, entityType, name, configs, append(order, added...)...)
}

// readConfig is an entity's configuration and the order of its keys.
func (a *Admin) readConfig(ctx context.Context, t zkstate.EntityType, name string) (map[string]string, []string, error) {
	r, err := a.zk.One(ctx, zkstate.Get(zkstate.EntityPath(t, name)))
	if errors.Is(err, zkstate.ErrNoNode) {
		return map[string]string{}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	c, err := zkstate.DecodeEntityConfig(r.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration of %s/%s: %w", t, name, err)
	}
	return c, zkstate.KeyOrder(r.Data), nil
}

// entityOf is where a resource's configuration is, if the resource is one that this broker may change.
func (a *Admin) entityOf(ctx context.Context, r Resource) (zkstate.EntityType, string, error) {
	switch r.Type {
	case ResourceTopic:
		if r.Name == "" {
			return "", "", failed(kerr.InvalidRequest, "Default topic resources are not allowed.")
		}
		unknown := failed(kerr.UnknownTopicOrPartition, "The topic '%s' does not exist.", r.Name)
		if ValidateTopicName(r.Name) != nil {
			return "", "", unknown
		}
		there, err := a.exists(ctx, zkstate.TopicPath(r.Name))
		if err == nil && !there {
			err = unknown
		}
		return zkstate.TopicEntity, r.Name, err
	case ResourceBroker:
		name, err := a.brokerEntity(r.Name, "Node id must be an integer, but it is: %s", "Unexpected broker id, expected %d, but received %s")
		return zkstate.BrokerEntity, name, err
	case ResourceClientMetrics:
		return "", "", failed(kerr.InvalidRequest, "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS")
	}
	return "", "", failed(kerr.InvalidRequest, "Unknown resource type %d", r.Type)
}

// brokerEntity is the entity of a broker's name: the default for the empty name, else the id, which has to be this
// broker's: only a broker itself can judge its settings.
func (a *Admin) brokerEntity(name, notANumber, another string) (string, error) {
	if name == "" {
		return zkstate.DefaultEntity, nil
	}
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return "", failed(kerr.InvalidRequest, notANumber, name)
	}
	if a.cfg.BrokerID >= 0 && int32(id) != a.cfg.BrokerID {
		return "", failed(kerr.InvalidRequest, another, a.cfg.BrokerID, name)
	}
	return strconv.FormatInt(id, 10), nil
}

// validateTopicConfig judges the settings of a topic to be created.
func (a *Admin) validateTopicConfig(entries []ConfigEntry) error {
	configs, order := configMap(entries)
	err := a.checkTopicConfigs(configs, order)
	var coded *Error
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return failed(kerr.InvalidConfig, "%s", err.Error())
}

// checkTopicConfigs judges a topic's settings: first the names, then the values, in the order given and then by name,
// then all together. An error without a code still lacks the resource that Kafka names before it.
func (a *Admin) checkTopicConfigs(configs map[string]string, order []string) error {
	names := keysInOrder(configs, order)
	for _, name := range names {
		if _, ok := a.cfg.Table.TopicKey(name); !ok {
			return failed(kerr.InvalidConfig, "Unknown topic config name: %s", name)
		}
	}
	for _, name := range names {
		if err := a.cfg.Table.CheckTopic(name, configs[name]); err != nil {
			return err
		}
	}
	return a.cfg.Table.CheckTopicTogether(configs)
}

func keysInOrder(configs map[string]string, order []string) []string {
	names := make([]string, 0, len(configs))
	for _, name := range order {
		if _, ok := configs[name]; ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var rest []string
	for name := range configs {
		if !slices.Contains(names, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return append(names, rest...)
}

// invalidFor completes an error about a value as Kafka does when it alters.
func invalidFor(r Resource, err error) error {
	var coded *Error
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return failed(kerr.InvalidConfig, "Invalid config value for resource %v: %s", r, err.Error())
}
