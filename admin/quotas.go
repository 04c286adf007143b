package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/config"
	"barnabas/zkstate"
)

// EntityPart is one part of a quota's entity: {"user", "alice"}, {"client-id", nil} for the default, {"ip", ...}.
type EntityPart struct {
	Type string
	Name *string // nil: the default of that type
}

// The types of parts.
const (
	UserPart     = "user"
	ClientIDPart = "client-id"
	IPPart       = "ip"
)

// QuotaEntity is whom a quota is for: a user, a client id, both, or an address.
type QuotaEntity []EntityPart

// QuotaValue is one limit, such as {"producer_byte_rate", 1024}.
type QuotaValue struct {
	Key   string
	Value float64
}

// QuotaOp sets or removes one limit (AlterClientQuotas).
type QuotaOp struct {
	Key    string
	Value  float64
	Remove bool
}

// QuotaSpec changes the limits of one entity.
type QuotaSpec struct {
	Entity QuotaEntity
	Ops    []QuotaOp
}

// QuotaResult answers a QuotaSpec.
type QuotaResult struct {
	Entity QuotaEntity
	Err    error
}

// The limits that users and clients can have, and addresses, with the type of their values.
var (
	clientQuotas = map[string]ConfigType{"producer_byte_rate": TypeLong, "consumer_byte_rate": TypeLong,
		"request_percentage": TypeDouble, "controller_mutation_rate": TypeDouble}
	ipQuotas = map[string]ConfigType{"connection_creation_rate": TypeInt}
)

// AlterClientQuotas changes quotas (KIP-546).
func (a *Admin) AlterClientQuotas(ctx context.Context, specs []QuotaSpec, validateOnly bool) []QuotaResult {
	results := make([]QuotaResult, len(specs))
	for i, spec := range specs {
		results[i] = QuotaResult{Entity: spec.Entity, Err: unavailable(a.alterQuota(ctx, spec, validateOnly))}
	}
	return results
}

func (a *Admin) alterQuota(ctx context.Context, spec QuotaSpec, validateOnly bool) error {
	t, name, keys, err := quotaEntity(spec.Entity)
	if err != nil {
		return err
	}
	configs, order, err := a.readConfig(ctx, t, name)
	if err != nil {
		return err
	}
	for _, op := range spec.Ops {
		if op.Remove {
			delete(configs, op.Key)
			continue
		}
		text, err := quotaText(op, keys)
		if err != nil {
			return err
		}
		configs[op.Key] = text
		order = append(order, op.Key)
	}
	if validateOnly {
		return nil
	}
	return a.setClientConfig(ctx, t, name, configs, order)
}

// quotaEntity is where an entity's limits are, and which it may have.
func quotaEntity(entity QuotaEntity) (t zkstate.EntityType, name string, keys map[string]ConfigType, err error) {
	if len(entity) == 0 {
		return "", "", nil, failed(kerr.InvalidRequest, "Invalid empty client quota entity")
	}
	parts := map[string]string{}
	for _, p := range entity {
		if p.Type != UserPart && p.Type != ClientIDPart && p.Type != IPPart {
			return "", "", nil, failed(kerr.InvalidRequest, "Unhandled client quota entity type: %s", p.Type)
		}
		if p.Name != nil && *p.Name == "" {
			return "", "", nil, failed(kerr.InvalidRequest, "Empty %s not supported", p.Type)
		}
		parts[p.Type] = sanitized(p.Name)
	}
	user, hasUser := parts[UserPart]
	client, hasClient := parts[ClientIDPart]
	_, hasIP := parts[IPPart]
	switch {
	case hasIP && (hasUser || hasClient):
		return "", "", nil, failed(kerr.InvalidRequest, "Invalid quota entity combination, IP entity should not be used with user/client ID entity.")
	case hasIP:
		// Kafka looks up the name as the node has it, and its brokers do again when they read the node. So one that
		// has to be escaped, as IPv6 addresses have, is refused: they could not live with it.
		if address := parts[IPPart]; address != zkstate.DefaultEntity && !resolvable(address) {
			return "", "", nil, failed(kerr.InvalidRequest, "%s is not a valid IP or resolvable host.", address)
		}
		return zkstate.IPEntity, parts[IPPart], ipQuotas, nil
	case hasUser && hasClient:
		return zkstate.UserEntity, zkstate.UserClientEntity(user, client), clientQuotas, nil
	case hasUser:
		return zkstate.UserEntity, user, clientQuotas, nil
	}
	return zkstate.ClientEntity, client, clientQuotas, nil
}

func sanitized(name *string) string {
	if name == nil {
		return zkstate.DefaultEntity
	}
	return zkstate.SanitizeName(*name)
}

func resolvable(address string) bool {
	if net.ParseIP(address) != nil {
		return true
	}
	_, err := net.LookupHost(address)
	return err == nil
}

// quotaText is a limit as the node holds it.
func quotaText(op QuotaOp, keys map[string]ConfigType) (string, error) {
	t, ok := keys[op.Key]
	if !ok {
		return "", failed(kerr.InvalidRequest, "Invalid configuration key %s", op.Key)
	}
	if t == TypeDouble {
		return config.FormatDouble(op.Value), nil
	}
	// A negative whole number misses itself by one here, as in Kafka, and so is refused.
	const epsilon = 1e-6
	whole := math.Trunc(op.Value + epsilon)
	limit := float64(math.MaxInt64)
	if t == TypeInt {
		limit = math.MaxInt32
	}
	if math.Abs(whole-op.Value) > epsilon || math.Abs(whole) > limit {
		return "", failed(kerr.InvalidRequest, "Configuration %s must be a %s value", op.Key, map[ConfigType]string{TypeLong: "LONG", TypeInt: "INT"}[t])
	}
	if whole >= math.MaxInt64 {
		return strconv.FormatInt(math.MaxInt64, 10), nil
	}
	return strconv.FormatInt(int64(whole), 10), nil
}

func checkAtLeastZero(name, value string) error {
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil {
		return fmt.Errorf("Invalid value %s for configuration %s: Not a number of type LONG", value, name) // Kafka's words
	}
	if n < 0 {
		return fmt.Errorf("Invalid value %d for configuration %s: Value must be at least 0", n, name) // Kafka's words
	}
	return nil
}

// setClientConfig writes an entity's configuration, or removes the node when nothing is left in and below it, so that
// the tree does not grow with every client that once had a quota.
func (a *Admin) setClientConfig(ctx context.Context, t zkstate.EntityType, name string, configs map[string]string, order []string) error {
	if len(configs) > 0 {
		return a.zk.SetEntityConfig(ctx, t, name, configs, order...)
	}
	removed, err := a.removeEntity(ctx, t, name)
	if err != nil {
		return err
	}
	if !removed {
		return a.zk.SetEntityConfig(ctx, t, name, configs)
	}
	return a.zk.NotifyConfigChange(ctx, zkstate.ConfigChange{Type: t, Name: name})
}

// removeEntity deletes an entity without children, and above a user's client what became empty with it: the directory
// of the user's clients and the user. A child that appears meanwhile keeps a node.
func (a *Admin) removeEntity(ctx context.Context, t zkstate.EntityType, name string) (bool, error) {
	paths := []string{zkstate.EntityPath(t, name)}
	if user, _, ok := strings.Cut(name, "/"+string(zkstate.ClientEntity)+"/"); ok && t == zkstate.UserEntity {
		userPath := zkstate.EntityPath(t, user)
		paths = append(paths, userPath+"/"+string(zkstate.ClientEntity))
		configs, _, err := a.readConfig(ctx, t, user)
		if err != nil {
			return false, err
		}
		if len(configs) == 0 {
			paths = append(paths, userPath)
		}
	}
	for i, path := range paths {
		_, err := a.zk.One(ctx, zkstate.Delete(path, zkstate.AnyVersion))
		switch {
		case err == nil, errors.Is(err, zkstate.ErrNoNode):
		case errors.Is(err, zkstate.ErrNotEmpty):
			return i > 0, nil
		default:
			return i > 0, err
		}
	}
	return true, nil
}

// quotaValues are the limits among an entity's settings, by key.
func quotaValues(configs map[string]string, keys map[string]ConfigType) ([]QuotaValue, error) {
	var values []QuotaValue
	for _, key := range keysInOrder(configs, nil) {
		if _, ok := keys[key]; !ok {
			continue // credentials
		}
		v, err := strconv.ParseFloat(configs[key], 64)
		if err != nil {
			return nil, fmt.Errorf("unexpected client quota configuration value: %s -> %s", key, configs[key])
		}
		values = append(values, QuotaValue{Key: key, Value: v})
	}
	slices.SortFunc(values, func(a, b QuotaValue) int { return strings.Compare(a.Key, b.Key) })
	return values, nil
}
