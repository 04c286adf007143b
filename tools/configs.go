package tools

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sort"
	"strconv"
	"strings"

	"barnabas/admin"
	"barnabas/config"
	"barnabas/tools/options"
)

var configsOptions = []options.Option{
	{Name: "add-config", Arity: options.One, Value: "String", Doc: "Settings to add: k1=v1,k2=[v1,v2,v2],k3=v3, where brackets hold values with commas. Topics have: " + topicKeyList() +
		". Users and clients have: " + strings.Join(clientQuotaKeys, ", ") + "; users also SCRAM-SHA-256 and SCRAM-SHA-512, as [iterations=4096,password=...]. Addresses have: connection_creation_rate."},
	{Name: "add-config-file", Arity: options.One, Value: "String", Doc: "Property file with settings to add."},
	{Name: "all", Doc: "With --describe: all settings of a topic or broker, not only those of its own."},
	{Name: "alter", Doc: "Change the settings of the entity."},
	{Name: "bootstrap-controller", Arity: options.One, Value: "String: controller to connect to", Doc: "Not for clusters with ZooKeeper."},
	{Name: "bootstrap-server", Arity: options.One, Value: "String: server to connect to", Doc: "Brokers to connect to, as host:port, separated by commas."},
	{Name: "broker", Arity: options.One, Value: "String", Doc: "The id of a broker."},
	{Name: "broker-defaults", Doc: "What holds for all brokers."},
	{Name: "broker-logger", Arity: options.One, Value: "String", Doc: "The id of a broker whose log levels are meant."},
	{Name: "client", Arity: options.One, Value: "String", Doc: "A client id."},
	{Name: "client-defaults", Doc: "What holds for all clients."},
	{Name: "command-config", Arity: options.One, Value: "String: command config property file", Doc: "Property file with settings of the client. Only with --bootstrap-server."},
	{Name: "delete-config", Arity: options.Many, Value: "String", Doc: "Settings to take back: k1,k2."},
	{Name: "describe", Doc: "Show the settings of the entity."},
	{Name: "entity-default", Doc: "In place of --entity-name: what holds for all of the type (clients, users, brokers, ips)."},
	{Name: "entity-name", Arity: options.Many, Value: "String", Doc: "The name of the entity: a topic, client id, user, broker id or address."},
	{Name: "entity-type", Arity: options.Many, Value: "String", Doc: "topics, clients, users, brokers, broker-loggers or ips; users together with clients are the clients of a user."},
	{Name: "force", Doc: "Do not ask for confirmation."},
	{Name: "help", Doc: "Print this text."},
	{Name: "ip", Arity: options.One, Value: "String", Doc: "An address."},
	{Name: "ip-defaults", Doc: "What holds for all addresses."},
	{Name: "topic", Arity: options.One, Value: "String", Doc: "The name of a topic."},
	{Name: "user", Arity: options.One, Value: "String", Doc: "The principal name of a user."},
	{Name: "user-defaults", Doc: "What holds for all users."},
	{Name: "version", Doc: "Print the version."},
	{Name: "zk-tls-config-file", Arity: options.One, Value: "String: ZooKeeper TLS configuration", Doc: "Property file with TLS settings for ZooKeeper."},
	{Name: "zookeeper", Arity: options.One, Value: "String: urls", Doc: "Deprecated: work on ZooKeeper directly, as host:port[,host:port...][/chroot]."},
}

// The types of entities, as the command line names them.
const (
	topicsType  = "topics"
	clientsType = "clients"
	usersType   = "users"
	brokersType = "brokers"
	loggersType = "broker-loggers"
	ipsType     = "ips"
)

var (
	scramMechanismNames = []string{"SCRAM-SHA-256", "SCRAM-SHA-512"}
	clientQuotaKeys     = []string{"consumer_byte_rate", "controller_mutation_rate", "producer_byte_rate", "request_percentage"}
)

// configsAsked is what kafka-configs was asked to do. Names belong to types by their place; a type without a name means all of that type, an empty name the default.
type configsAsked struct {
	alter, all bool
	types      []string
	names      []string
	add        []setting // no key twice
	remove     []string
}

type setting struct{ key, value string }

// configsService does the work through one of the two doors.
type configsService interface {
	describe(a configsAsked) error
	alter(a configsAsked) error
	close()
}

// Configs is kafka-configs.
func Configs(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.admin.ConfigCommand", intro: "This tool helps to manipulate and describe entity config for a topic, client, user, broker or ip", options: configsOptions, misread: onlyReason, stdout: stdout, stderr: stderr}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if set.Has("alter") == set.Has("describe") {
		return f.usage("Command must include exactly one action: --describe, --alter")
	}
	for _, option := range []string{"add-config", "delete-config"} {
		if set.Has("describe") && set.Has(option) {
			return f.usage(notTogether("describe", option))
		}
	}
	err := configs(f, set)
	if err == nil {
		return 0
	}
	var bad *badArgument
	var refused *admin.Error
	if errors.As(err, &bad) || errors.As(err, &refused) {
		fmt.Fprintln(stderr, err)
	} else {
		fmt.Fprintf(stderr, "Error while executing config command with args '%s'\n%s", strings.Join(args, " "), stackTrace(err))
	}
	return 1
}

func configs(f face, set *options.Set) error {
	a, err := readConfigsCall(set)
	if err != nil {
		return err
	}
	if set.Has("zookeeper") {
		fmt.Fprintln(f.stdout, "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.")
		fmt.Fprintln(f.stdout, "Use --bootstrap-server instead to specify a broker to connect to.")
	}
	if a.alter {
		if a.add, a.remove, err = readChanges(set); err != nil {
			return err
		}
		for _, s := range a.add {
			if s.key == "message.format.version" {
				fmt.Fprintf(f.stdout, "WARNING: The configuration message.format.version=%s is specified. This configuration will be ignored if the version is newer than the inter.broker.protocol.version specified in the broker.\n", s.value)
			}
		}
	}
	service, err := openConfigs(f, set)
	if err != nil {
		return err
	}
	defer service.close()
	if a.alter {
		return service.alter(a)
	}
	return service.describe(a)
}

func openConfigs(f face, set *options.Set) (configsService, error) {
	if set.Has("zookeeper") {
		servers, err := set.Value("zookeeper")
		if err != nil {
			return nil, err
		}
		tlsFile, err := set.Value("zk-tls-config-file")
		if err != nil {
			return nil, err
		}
		return openConfigsByZooKeeper(f, servers, tlsFile)
	}
	client, err := adminClient.connect(set)
	if err != nil {
		return nil, err
	}
	return &configsByBroker{f, client}, nil
}

// entityFlags are the short forms of a type with a name, in the order in which they count, and the defaults' after them.
var (
	entityFlags        = [][2]string{{"topic", topicsType}, {"client", clientsType}, {"user", usersType}, {"broker", brokersType}, {"broker-logger", loggersType}, {"ip", ipsType}}
	entityDefaultFlags = [][2]string{{"client-defaults", clientsType}, {"user-defaults", usersType}, {"broker-defaults", brokersType}, {"ip-defaults", ipsType}}
)

// readEntities collects types and names from the two ways in which they are given.
func readEntities(set *options.Set) (types, names []string, short bool, err error) {
	types = slices.Clone(set.Values("entity-type"))
	next := 0
	for _, option := range set.Order() {
		switch option {
		case "entity-name":
			names = append(names, set.Values("entity-name")[next])
			next++
		case "entity-default":
			names = append(names, "")
		}
	}
	for _, flag := range entityFlags {
		if set.Has(flag[0]) {
			value, err := set.Value(flag[0])
			if err != nil {
				return nil, nil, false, err
			}
			types, names, short = append(types, flag[1]), append(names, value), true
		}
	}
	for _, flag := range entityDefaultFlags {
		if set.Has(flag[0]) {
			types, names, short = append(types, flag[1]), append(names, ""), true
		}
	}
	return types, names, short, nil
}

func readConfigsCall(set *options.Set) (configsAsked, error) {
	types, names, short, err := readEntities(set)
	a := configsAsked{alter: set.Has("alter"), all: set.Has("all"), types: types, names: names}
	if err != nil {
		return a, err
	}
	if reason := wrongTypes(set, types); reason != "" {
		return a, &badArgument{reason}
	}
	if short && (set.Has("entity-name") || set.Has("entity-type") || set.Has("entity-default")) {
		return a, &badArgument{"--entity-{type,name,default} should not be used in conjunction with specific entity flags"}
	}
	if set.Has("bootstrap-server") == set.Has("zookeeper") {
		if set.Has("zookeeper") {
			return a, &badArgument{"Only one of --bootstrap-server or --zookeeper must be specified"}
		}
		return a, &badArgument{"One of the required --bootstrap-server or --zookeeper arguments must be specified"}
	}
	if a.all && set.Has("zookeeper") {
		return a, &badArgument{"--bootstrap-server must be specified for --all"}
	}
	if reason := wrongNames(a); reason != "" {
		return a, &badArgument{reason}
	}
	if !a.alter {
		return a, nil
	}
	return a, wrongAlter(set, a)
}

func wrongTypes(set *options.Set, types []string) string {
	var twice []string
	for i, t := range types {
		if slices.Contains(types[:i], t) {
			twice = append(twice, t)
		}
	}
	if twice != nil {
		return "Duplicate entity type(s) specified: " + strings.Join(twice, ",")
	}
	allowed, door := []string{topicsType, clientsType, usersType, brokersType, ipsType}, "--zookeeper argument"
	if compat39() {
		allowed = []string{usersType, brokersType}
	}
	if set.Has("bootstrap-server") {
		allowed, door = []string{topicsType, clientsType, usersType, brokersType, ipsType, loggersType}, "--bootstrap-server argument"
	}
	for _, t := range types {
		if slices.Contains(allowed, t) {
			continue
		}
		if compat39() {
			return fmt.Sprintf("Invalid entity type %s, the entity type must be one of %s with a %s", t, strings.Join(allowed, ", "), door)
		}
		return fmt.Sprintf("Invalid entity type %s, the entity type must be one of %s with the %s", t, strings.Join(allowed, ","), door)
	}
	switch {
	case len(types) == 0:
		return "At least one entity type must be specified"
	case len(types) > 2, len(types) == 2 && !(slices.Contains(types, usersType) && slices.Contains(types, clientsType)):
		return "Only 'users' and 'clients' entity types may be specified together"
	}
	return ""
}

func wrongNames(a configsAsked) string {
	if len(a.names) > len(a.types) {
		return "More entity names specified than entity types"
	}
	for _, name := range a.names {
		if name == "" {
			continue
		}
		switch first := a.types[0]; first {
		case brokersType, loggersType:
			if _, err := strconv.ParseInt(name, 10, 32); err != nil {
				return fmt.Sprintf("The entity name for %s must be a valid integer broker id, but it is: %s", first, name)
			}
		case ipsType:
			if net.ParseIP(name) == nil {
				if _, err := net.LookupHost(name); err != nil {
					return fmt.Sprintf("The entity name for %s must be a valid IP or resolvable host, but it is: %s", first, name)
				}
			}
		}
	}
	if !a.alter && a.types[0] == loggersType && (len(a.names) == 0 || a.names[0] == "") {
		return "an entity name must be specified with --describe of broker-loggers"
	}
	return ""
}

func wrongAlter(set *options.Set, a configsAsked) error {
	hasName := slices.ContainsFunc(a.names, func(n string) bool { return n != "" })
	if a.types[0] == topicsType || a.types[0] == loggersType {
		if !hasName {
			return &badArgument{"an entity name must be specified with --alter of " + strings.Join(a.types, ",")}
		}
	} else if len(a.names) == 0 {
		return &badArgument{"an entity-name or default entity must be specified with --alter of users, clients, brokers or ips"}
	}
	if set.Has("add-config") && set.Has("add-config-file") {
		return &badArgument{"Only one of --add-config or --add-config-file must be specified"}
	}
	if !set.Has("add-config") && !set.Has("add-config-file") && !set.Has("delete-config") {
		return &badArgument{"At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"}
	}
	if len(a.names) != len(a.types) {
		if set.Has("zookeeper") {
			return &badArgument{"--entity-name or --entity-default must be specified with each --entity-type for --alter"}
		}
		return &badArgument{"An entity name must be specified for every entity type"}
	}
	return nil
}

// readChanges reads what is to be added and taken back.
func readChanges(set *options.Set) (add []setting, remove []string, err error) {
	file, err := set.Value("add-config-file")
	if err != nil {
		return nil, nil, err
	}
	fromFile, err := readProperties(file)
	if err != nil {
		return nil, nil, err
	}
	for key, value := range fromFile {
		add = append(add, setting{key, value})
	}
	sort.Slice(add, func(i, j int) bool { return add[i].key < add[j].key })
	if set.Has("add-config") {
		text, err := set.Value("add-config")
		if err != nil {
			return nil, nil, err
		}
		if add, err = parseSettings(text); err != nil {
			return nil, nil, err
		}
	}
	for _, list := range set.Values("delete-config") {
		for _, key := range strings.Split(list, ",") {
			remove = append(remove, strings.TrimSpace(key))
		}
	}
	return add, remove, nil
}

// parseSettings reads k1=v1,k2=[v1,v2]: commas and equal signs inside brackets belong to the value. Of a key that is given twice the last value counts.
func parseSettings(text string) ([]setting, error) {
	var list []setting
	for _, part := range splitOutside(text, ',') {
		pair := splitOutside(part, '=')
		if len(pair) != 2 {
			return nil, &badArgument{`requirement failed: Invalid entity config: all configs to be added must be in the format "key=val".`}
		}
		s := setting{strings.TrimSpace(pair[0]), strings.TrimSpace(strings.NewReplacer("[", "", "]", "").Replace(pair[1]))}
		if compat39() && strings.Trim(s.key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
			return nil, &badArgument{"Invalid character found for config key: " + s.key}
		}
		list = slices.DeleteFunc(list, func(old setting) bool { return old.key == s.key })
		list = append(list, s)
	}
	return list, nil
}

// splitOutside splits at a separator after which no bracket closes before one opens.
func splitOutside(text string, separator byte) []string {
	var parts []string
	start := 0
	for i := range len(text) {
		if text[i] != separator {
			continue
		}
		closes, opens := strings.IndexByte(text[i+1:], ']'), strings.IndexByte(text[i+1:], '[')
		if closes < 0 || opens >= 0 && opens < closes {
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

// missingSettings is the error of taking back what is not set; nil when all is there.
func missingSettings(remove []string, has func(key string) bool) error {
	missing := slices.DeleteFunc(slices.Clone(remove), has)
	if len(missing) == 0 {
		return nil
	}
	return &badArgument{"Invalid config(s): " + strings.Join(missing, ",")}
}

// scramSecret reads [iterations=N,]password=TEXT.
func scramSecret(mechanism, text string) (iterations int, password string, err error) {
	iterations = defaultScramIterations
	rest, given := strings.CutPrefix(text, "iterations=")
	if given {
		number, after, ok := strings.Cut(rest, ",")
		if iterations, err = strconv.Atoi(number); err != nil || !ok {
			return 0, "", &badArgument{fmt.Sprintf("Invalid credential property %s=%s", mechanism, text)}
		}
		if rest = after; iterations == -1 {
			iterations = defaultScramIterations
		}
	}
	password, ok := strings.CutPrefix(rest, "password=")
	if !ok {
		return 0, "", &badArgument{fmt.Sprintf("Invalid credential property %s=%s", mechanism, text)}
	}
	if iterations < defaultScramIterations {
		return 0, "", &badArgument{fmt.Sprintf("Iterations %d is less than the minimum %d required for %s", iterations, defaultScramIterations, mechanism)}
	}
	return iterations, password, nil
}

// defaultScramIterations is also the fewest that brokers accept.
const defaultScramIterations = 4096

func topicKeyList() string {
	var names []string
	for _, k := range config.Topic.Keys() {
		names = append(names, k.Name)
	}
	return strings.Join(names, ", ")
}
