package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"

	"barnabas/admin"
	"barnabas/config"
	"barnabas/config/secret"
	"barnabas/zkstate"
)

// configsByZooKeeper works on ZooKeeper directly, as --zookeeper wants it: for what brokers have to find when they start, and for clusters whose brokers have no API for it.
type configsByZooKeeper struct {
	f     face
	zk    *zkstate.Client
	admin *admin.Admin
}

func openConfigsByZooKeeper(f face, servers, tlsFile string) (configsService, error) {
	zk, err := connectZooKeeper(servers, tlsFile, "")
	if err != nil {
		return nil, err
	}
	adm, err := adminOfTool(zk, nil)
	if err != nil {
		zk.Close()
		return nil, err
	}
	return &configsByZooKeeper{f, zk, adm}, nil
}

// adminOfTool makes what decides about topics and settings where the brokers decide it too. A tool has no broker's defaults, and asks for numbers instead. It gives no topic id:
// the controller does, where the protocol between brokers has ids.
func adminOfTool(zk *zkstate.Client, passwords *secret.Encoder) (*admin.Admin, error) {
	defaults, err := config.New(nil)
	if err != nil {
		return nil, err
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	return admin.New(admin.Config{BrokerID: -1, DefaultPartitions: 1, DefaultReplicationFactor: 1, DeleteTopics: true, Table: admin.NewConfigTable(defaults), Passwords: passwords, Intn: rand.IntN, Log: logrus.NewEntry(quiet)}, zk), nil
}

func (s *configsByZooKeeper) close() { s.zk.Close() }

// zkEntity is an entity with its node's name, and how it is shown.
type zkEntity struct {
	kind  zkstate.EntityType
	name  string
	shown string
}

// zkPart is one part of an entity: all of a type when it has no name.
type zkPart struct {
	kind zkstate.EntityType
	name *string // sanitised
}

var zkTypes = map[string]zkstate.EntityType{topicsType: zkstate.TopicEntity, clientsType: zkstate.ClientEntity, usersType: zkstate.UserEntity, brokersType: zkstate.BrokerEntity, ipsType: zkstate.IPEntity}

// shown names a part as people read it.
func (p zkPart) shown() string {
	kind := map[zkstate.EntityType]string{zkstate.UserEntity: "user-principal", zkstate.ClientEntity: "client-id", zkstate.TopicEntity: "topic"}[p.kind]
	if kind == "" {
		kind = string(p.kind)
	}
	if *p.name == zkstate.DefaultEntity {
		return "default " + kind
	}
	name := *p.name
	if p.kind == zkstate.UserEntity || p.kind == zkstate.ClientEntity {
		if plain, err := zkstate.DesanitizeName(name); err == nil {
			name = plain
		}
	}
	return fmt.Sprintf("%s '%s'", kind, name)
}

// zkParts are the parts of the entity that was asked for; a user comes before its client however they were given.
func zkParts(a configsAsked) []zkPart {
	var parts []zkPart
	for i, t := range a.types {
		p := zkPart{kind: zkTypes[t]}
		if i < len(a.names) {
			name := a.names[i]
			switch {
			case name == "":
				name = zkstate.DefaultEntity
			case t == usersType || t == clientsType:
				name = zkstate.SanitizeName(name)
			}
			p.name = &name
		}
		parts = append(parts, p)
	}
	if len(parts) == 2 && parts[0].kind == zkstate.ClientEntity {
		slices.Reverse(parts)
		if parts[0].name == nil { // one name belongs to the first part whatever it is
			parts[0].name, parts[1].name = parts[1].name, nil
		}
	}
	return parts
}

func entityOf(parts []zkPart) zkEntity {
	if len(parts) == 1 {
		return zkEntity{parts[0].kind, *parts[0].name, parts[0].shown()}
	}
	return zkEntity{zkstate.UserEntity, zkstate.UserClientEntity(*parts[0].name, *parts[1].name), parts[0].shown() + ", " + parts[1].shown()}
}

// entities lists what the parts stand for.
func (s *configsByZooKeeper) entities(parts []zkPart) ([]zkEntity, error) {
	roots := []string{}
	if parts[0].name != nil {
		roots = append(roots, *parts[0].name)
	} else {
		var err error
		if roots, err = s.children(zkstate.EntityTypePath(parts[0].kind)); err != nil {
			return nil, err
		}
	}
	var list []zkEntity
	for _, root := range roots {
		named := []zkPart{{parts[0].kind, &root}}
		if len(parts) == 1 {
			list = append(list, entityOf(named))
			continue
		}
		clients := []string{}
		if parts[1].name != nil {
			clients = append(clients, *parts[1].name)
		} else {
			var err error
			if clients, err = s.children(zkstate.EntityPath(zkstate.UserEntity, root) + "/" + string(zkstate.ClientEntity)); err != nil {
				return nil, err
			}
		}
		for _, client := range clients {
			list = append(list, entityOf(append(slices.Clone(named), zkPart{zkstate.ClientEntity, &client})))
		}
	}
	return list, nil
}

func (s *configsByZooKeeper) children(path string) ([]string, error) {
	r, err := s.zk.One(context.Background(), zkstate.Children(path))
	if errors.Is(err, zkstate.ErrNoNode) {
		return nil, nil
	}
	sort.Strings(r.Children)
	return r.Children, err
}

// read is an entity's settings in the order of its node.
func (s *configsByZooKeeper) read(e zkEntity) ([]setting, error) {
	r, err := s.zk.One(context.Background(), zkstate.Get(zkstate.EntityPath(e.kind, e.name)))
	if errors.Is(err, zkstate.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	values, err := zkstate.DecodeEntityConfig(r.Data)
	if err != nil {
		return nil, err
	}
	var list []setting
	for _, key := range zkstate.KeyOrder(r.Data) {
		list = append(list, setting{key, values[key]})
	}
	return list, nil
}

func (s *configsByZooKeeper) describe(a configsAsked) error {
	parts := zkParts(a)
	if compat39() && a.types[0] == brokersType {
		if err := s.needStopped(entityName(parts), "--bootstrap-server option must be specified to describe brokers"); err != nil {
			return err
		}
	}
	list, err := s.entities(parts)
	if err != nil {
		return err
	}
	allUsers := parts[0].kind == zkstate.UserEntity && parts[0].name == nil && len(parts) == 1
	for _, e := range list {
		settings, err := s.read(e)
		if err != nil {
			return err
		}
		if allUsers && len(settings) == 0 {
			continue // only the directory of its clients
		}
		texts := make([]string, len(settings))
		for i, setting := range settings {
			texts[i] = setting.key + "=" + setting.value
		}
		fmt.Fprintf(s.f.stdout, "Configs for %s are %s\n", e.shown, strings.Join(texts, ","))
	}
	return nil
}

func entityName(parts []zkPart) string {
	if parts[0].name == nil {
		return ""
	}
	return *parts[0].name
}

// needStopped refuses while a broker runs that the settings are for.
func (s *configsByZooKeeper) needStopped(name, message string) error {
	running, err := s.children(zkstate.BrokerIDsPath)
	if err != nil {
		return err
	}
	const info = "Broker configuration operations using ZooKeeper are only supported if the affected broker(s) are not running."
	if name != zkstate.DefaultEntity && name != "" {
		if slices.Contains(running, name) {
			return &badArgument{fmt.Sprintf("requirement failed: %s - broker %s is running. %s", message, name, info)}
		}
		return nil
	}
	if len(running) > 0 {
		return &badArgument{fmt.Sprintf("requirement failed: %s - %d brokers are running. %s", message, len(running), info)}
	}
	return nil
}

// throttleRates are the settings that may be changed here while brokers run.
var throttleRates = []string{leaderThrottleRate, followerThrottleRate, logDirThrottleRate}

func (s *configsByZooKeeper) alter(a configsAsked) error {
	e := entityOf(zkParts(a))
	if err := s.mayAlter(a, e); err != nil {
		return err
	}
	existing, err := s.read(e)
	if err != nil {
		return err
	}
	has := func(key string) bool { return slices.Contains(keysOf(existing), key) }
	if err := missingSettings(a.remove, has); err != nil {
		return err
	}
	switch e.kind {
	case zkstate.TopicEntity:
		err = alterResource(s.admin, admin.Resource{Type: admin.ResourceTopic, Name: e.name}, a)
	case zkstate.BrokerEntity:
		err = s.alterBroker(e.name, a)
	default:
		err = s.alterClient(e, a, existing)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.f.stdout, "Completed updating config for entity: %s.\n", e.shown)
	return nil
}

// mayAlter refuses what only brokers can judge, or what the newer release keeps for them.
func (s *configsByZooKeeper) mayAlter(a configsAsked, e zkEntity) error {
	changed := append(keysOf(a.add), a.remove...)
	if compat39() {
		message := fmt.Sprintf("--bootstrap-server option must be specified to update %s configs: {add: {%s}, delete: List(%s)}", e.kind, strings.Join(keysOf(a.add), ", "), strings.Join(a.remove, ", "))
		if e.kind == zkstate.UserEntity && slices.ContainsFunc(changed, func(key string) bool { return !isScram(key) }) {
			return &badArgument{"requirement failed: " + message + ". User configuration updates using ZooKeeper are only supported for SCRAM credential updates."}
		}
		if e.kind == zkstate.BrokerEntity {
			return s.needStopped(e.name, message)
		}
		return nil
	}
	if e.kind != zkstate.BrokerEntity {
		return nil
	}
	others := slices.DeleteFunc(keysOf(a.add), func(key string) bool { return slices.Contains(throttleRates, key) })
	if len(others) == 0 {
		return nil
	}
	running, err := s.children(zkstate.BrokerIDsPath)
	if err != nil {
		return err
	}
	const info = "Broker configuration updates using ZooKeeper are supported for bootstrapping before brokers are started to enable encrypted password configs to be stored in ZooKeeper."
	message := fmt.Sprintf("requirement failed: --bootstrap-server option must be specified to update broker configs Set(%s).", strings.Join(others, ", "))
	switch {
	case e.name == zkstate.DefaultEntity && len(running) > 0:
		return &badArgument{fmt.Sprintf("%s for default cluster if any broker is running. %s", message, info)}
	case slices.Contains(running, e.name):
		return &badArgument{fmt.Sprintf("%s when broker %s is running. %s", message, e.name, info)}
	}
	return nil
}

// alterBroker changes what a broker will find when it starts. Its passwords are encrypted as the settings password.encoder.* say, which
// are not kept.
func (s *configsByZooKeeper) alterBroker(name string, a configsAsked) error {
	if name == zkstate.DefaultEntity {
		name = ""
	}
	encoding := map[string]string{}
	a.add = slices.DeleteFunc(slices.Clone(a.add), func(add setting) bool {
		isEncoding := strings.HasPrefix(add.key, "password.encoder.")
		if isEncoding {
			encoding[add.key] = add.value
		}
		return isEncoding
	})
	how, err := config.New(encoding)
	if err != nil {
		return &badArgument{err.Error()}
	}
	passwords := how.PasswordEncoder("password.encoder.secret")
	if secrets := slices.DeleteFunc(keysOf(a.add), func(key string) bool { return !admin.IsPassword(key) }); len(secrets) > 0 && passwords == nil {
		return &badArgument{fmt.Sprintf("requirement failed: password.encoder.secret must be specified to update Set(%s). Other password encoder configs like cipher algorithm and iterations"+
			" may also be specified to override the default encoding parameters. Password encoder configs will not be persisted in ZooKeeper.", strings.Join(secrets, ", "))}
	}
	adm, err := adminOfTool(s.zk, passwords)
	if err != nil {
		return err
	}
	return alterResource(adm, admin.Resource{Type: admin.ResourceBroker, Name: name}, a)
}

func alterResource(adm *admin.Admin, r admin.Resource, a configsAsked) error {
	var ops []admin.ConfigOp
	for _, add := range a.add {
		ops = append(ops, admin.ConfigOp{Name: add.key, Op: admin.OpSet, Value: &add.value})
	}
	for _, key := range a.remove {
		ops = append(ops, admin.ConfigOp{Name: key, Op: admin.OpDelete})
	}
	return adm.IncrementalAlterConfigs(context.Background(), []admin.IncrementalSpec{{Resource: r, Ops: ops}}, false)[0].Err
}

// alterClient changes what a client, user or address has: its node holds quotas as they were written, and credentials.
func (s *configsByZooKeeper) alterClient(e zkEntity, a configsAsked, existing []setting) error {
	values, order := zkstate.EntityConfig{}, keysOf(existing)
	for _, old := range existing {
		values[old.key] = old.value
	}
	for _, add := range a.add {
		value, err := clientSetting(e.kind, add)
		if err != nil {
			return err
		}
		values[add.key], order = value, append(order, add.key)
	}
	for _, key := range a.remove {
		delete(values, key)
	}
	return s.zk.SetEntityConfig(context.Background(), e.kind, e.name, values, order...)
}

// clientSetting is a quota or credential as a node holds it.
func clientSetting(kind zkstate.EntityType, s setting) (string, error) {
	known, number, bits := clientQuotaKeys, "LONG", 64
	if kind == zkstate.IPEntity {
		known, number, bits = []string{"connection_creation_rate"}, "INT", 32
	}
	switch {
	case kind == zkstate.UserEntity && isScram(s.key):
		iterations, password, err := scramSecret(s.key, s.value)
		if err != nil {
			return "", err
		}
		salt := admin.NewSalt()
		salted, err := admin.SaltPassword(scramMechanism(s.key), password, salt, iterations)
		if err != nil {
			return "", err
		}
		return admin.NewScramCredential(scramMechanism(s.key), salt, salted, iterations).String(), nil
	case !slices.Contains(known, s.key):
		return "", &badArgument{fmt.Sprintf("requirement failed: Unknown Dynamic Configuration: HashSet(%s).", s.key)}
	case s.key == "request_percentage" || s.key == "controller_mutation_rate":
		n, err := config.ParseDouble(s.value)
		return s.value, badQuota(s, "DOUBLE", n < 0, err)
	}
	n, err := strconv.ParseInt(s.value, 10, bits)
	return s.value, badQuota(s, number, n < 0, err)
}

func badQuota(s setting, kind string, negative bool, err error) error {
	switch {
	case err != nil:
		return &badArgument{fmt.Sprintf("Invalid value %s for configuration %s: Not a number of type %s", s.value, s.key, kind)}
	case negative:
		return &badArgument{fmt.Sprintf("Invalid value %s for configuration %s: Value must be at least 0", s.value, s.key)}
	}
	return nil
}
