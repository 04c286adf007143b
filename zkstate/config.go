package zkstate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Configurations that can be changed while the cluster runs. A change is two writes: the entity's node, then a
// numbered notification whose only meaning is "read that entity again". Brokers delete old notifications.

// EntityType is what is configured; its text is the directory below /config.
type EntityType string

// The types of entities.
const (
	TopicEntity  EntityType = "topics"
	ClientEntity EntityType = "clients"
	UserEntity   EntityType = "users"
	BrokerEntity EntityType = "brokers"
	IPEntity     EntityType = "ips"
)

// DefaultEntity is the name that stands for "all that have no configuration of their own".
const DefaultEntity = "<default>"

// Paths of configurations.
const (
	ConfigPath         = "/config"
	ConfigChangesPath  = "/config/changes"
	configChangePrefix = "config_change_"
)

func configRoot(t EntityType) string { return ConfigPath + "/" + string(t) }

// EntityTypePath is the directory of the entities of a type.
func EntityTypePath(t EntityType) string { return configRoot(t) }

// EntityPath is the node of an entity. Names of clients, users and addresses are sanitised (SanitizeName); a user's
// client is the name USER/clients/CLIENT of type UserEntity.
func EntityPath(t EntityType, name string) string { return configRoot(t) + "/" + name }

// UserClientEntity is the name of a client of a user, both sanitised.
func UserClientEntity(user, client string) string {
	return user + "/" + string(ClientEntity) + "/" + client
}

// EntityConfig is the data of EntityPath.
type EntityConfig map[string]string

// Encode writes the node. Kafka's order of keys is that of a hash table; where keys share a bucket it is the order in
// which they were set, for which earlier may list the keys of the node that is replaced (KeyOrder) and what is new.
func (c EntityConfig) Encode(earlier ...string) []byte {
	keys := make([]string, 0, len(c))
	for _, k := range earlier {
		if _, ok := c[k]; ok && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	for _, k := range keysOf(c) {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	var w jsonWriter
	w.open('{')
	w.key("version")
	w.int(1)
	w.key("config")
	w.open('{')
	for _, k := range javaOrder(keys) {
		w.key(k)
		w.str(c[k])
	}
	w.close('}')
	w.close('}')
	return w.buf
}

// DecodeEntityConfig reads the node. A node without data, such as the directory users/NAME of a user that has
// only clients, is an empty configuration.
func DecodeEntityConfig(data []byte) (EntityConfig, error) {
	c := EntityConfig{}
	if len(data) == 0 {
		return c, nil
	}
	o := parseObject("configuration", data)
	values := o.child("config")
	for k := range values.fields {
		c[k] = values.str(k)
	}
	if values.err != nil {
		o.fail("config", values.err)
	}
	return c, o.wrapped()
}

// KeyOrder lists the keys of an encoded EntityConfig in the order of the node; nothing when it is malformed.
func KeyOrder(data []byte) []string {
	o := parseObject("configuration", data)
	d := json.NewDecoder(bytes.NewReader(o.fields["config"]))
	var keys []string
	for {
		key, err := d.Token()
		if err != nil || key == json.Delim('}') {
			return keys
		}
		if s, ok := key.(string); ok {
			keys = append(keys, s)
			var value json.RawMessage
			if d.Decode(&value) != nil {
				return nil
			}
		}
	}
}

// ConfigChange is the data of a notification below ConfigChangesPath.
type ConfigChange struct {
	Type EntityType
	Name string // as in EntityPath
}

// Encode writes version 2 of the node, which Kafka has written since 0.9.
func (c ConfigChange) Encode() []byte {
	var w jsonWriter
	w.open('{')
	w.key("version")
	w.int(2)
	w.key("entity_path")
	w.str(string(c.Type) + "/" + c.Name)
	w.close('}')
	return w.buf
}

// DecodeConfigChange reads versions 1 and 2 of the node.
func DecodeConfigChange(data []byte) (ConfigChange, error) {
	o := parseObject("configuration change", data)
	var c ConfigChange
	switch version := o.int32("version"); {
	case o.err != nil:
	case version == 1:
		c = ConfigChange{Type: EntityType(o.str("entity_type")), Name: o.str("entity_name")}
	case version == 2:
		t, name, ok := strings.Cut(o.str("entity_path"), "/")
		if !ok {
			o.fail("entity_path", errors.New("names no entity"))
		}
		c = ConfigChange{Type: EntityType(t), Name: name}
	default:
		o.fail("version", errVersion)
	}
	return c, o.wrapped()
}

// EntityConfig reads an entity's configuration, and the version for SetEntityConfigIf; a missing node is empty, with
// version AnyVersion.
func (c *Client) EntityConfig(ctx context.Context, t EntityType, name string) (EntityConfig, int32, error) {
	r, err := c.One(ctx, Get(EntityPath(t, name)))
	if errors.Is(err, ErrNoNode) {
		return EntityConfig{}, AnyVersion, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading the configuration of %s/%s: %w", t, name, err)
	}
	config, err := DecodeEntityConfig(r.Data)
	return config, r.Stat.Version, err
}

// SetEntityConfig replaces an entity's configuration and notifies the brokers. earlier is EntityConfig.Encode's.
func (c *Client) SetEntityConfig(ctx context.Context, t EntityType, name string, config EntityConfig, earlier ...string) error {
	if err := c.PutEntityConfig(ctx, t, name, config, earlier...); err != nil {
		return err
	}
	return c.NotifyConfigChange(ctx, ConfigChange{Type: t, Name: name})
}

// PutEntityConfig replaces an entity's configuration without telling anybody.
func (c *Client) PutEntityConfig(ctx context.Context, t EntityType, name string, config EntityConfig, earlier ...string) error {
	path, data := EntityPath(t, name), config.Encode(earlier...)
	for {
		_, err := c.One(ctx, Set(path, data, AnyVersion))
		if errors.Is(err, ErrNoNode) {
			err = c.createBelow(ctx, path, data)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrNodeExists):
		case errors.Is(err, ErrConnectionLoss) && ctx.Err() == nil: // writing it twice is writing it
		default:
			return fmt.Errorf("writing the configuration of %s/%s: %w", t, name, err)
		}
	}
}

// createBelow creates a node, and what is above it when that is missing.
func (c *Client) createBelow(ctx context.Context, path string, data []byte) error {
	_, err := c.One(ctx, Create(path, data))
	if !errors.Is(err, ErrNoNode) {
		return err
	}
	if err := c.CreateRecursive(ctx, parent(path), nil); err != nil {
		return err
	}
	_, err = c.One(ctx, Create(path, data))
	return err
}

// NotifyConfigChange makes the brokers read an entity's configuration again.
func (c *Client) NotifyConfigChange(ctx context.Context, change ConfigChange) error {
	return c.notify(ctx, ConfigChangesPath+"/"+configChangePrefix, change.Encode())
}

// notify creates a numbered notification. After a lost answer it makes another: telling twice does no harm.
func (c *Client) notify(ctx context.Context, prefix string, data []byte) error {
	for {
		_, err := c.One(ctx, CreateSequential(prefix, data))
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrConnectionLoss) && ctx.Err() == nil:
		case errors.Is(err, ErrNoNode):
			if err := c.CreateRecursive(ctx, parent(prefix), nil); err != nil {
				return err
			}
		default:
			return fmt.Errorf("notifying at %s: %w", prefix, err)
		}
	}
}
