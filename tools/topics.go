package tools

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"barnabas/admin/cluster"
	"barnabas/config"
	"barnabas/tools/options"
)

var topicsOptions = []options.Option{
	{Name: "alter", Doc: "Give a topic more partitions; through ZooKeeper also change its configuration."},
	{Name: "at-min-isr-partitions", Doc: "With --describe: only partitions with just as many in-sync replicas as min.insync.replicas asks for. Not with --zookeeper."},
	{Name: "bootstrap-server", Arity: options.One, Value: "String: server to connect to", Doc: "Brokers to connect to, as host:port, separated by commas."},
	{Name: "command-config", Arity: options.One, Value: "String: command config property file", Doc: "Property file with settings of the client. Only with --bootstrap-server."},
	{Name: "config", Arity: options.Many, Value: "String: name=value", Doc: "A setting of the topic that is created, or altered through ZooKeeper. Known are: " + topicKeyList() + "."},
	{Name: "create", Doc: "Create a topic."},
	{Name: "delete", Doc: "Delete a topic."},
	{Name: "delete-config", Arity: options.Many, Value: "String: name", Doc: "A setting to take back. Only with --zookeeper."},
	{Name: "describe", Doc: "Show topics and their partitions."},
	{Name: "disable-rack-aware", Doc: "Spread replicas without regard to racks. Only with --zookeeper."},
	{Name: "exclude-internal", Doc: "Leave internal topics out of --list and --describe."},
	{Name: "force", Doc: "Do not ask for confirmation."},
	{Name: "help", Doc: "Print this text."},
	{Name: "if-exists", Doc: "With --alter, --delete and --describe: do nothing when the topic does not exist."},
	{Name: "if-not-exists", Doc: "With --create: do nothing when the topic exists."},
	{Name: "list", Doc: "List topics."},
	{Name: "partition-size-limit-per-response", Arity: options.One, Value: "Integer: maximum number of partitions in one response.", Doc: "Accepted; topics are described in one piece."},
	{Name: "partitions", Arity: options.One, Value: "Integer: # of partitions", Doc: "How many partitions a topic is to have. More partitions change where keyed records go."},
	{Name: "replica-assignment", Arity: options.One, Value: "String: broker_id_for_part1_replica1 : broker_id_for_part1_replica2 , broker_id_for_part2_replica1 : ...", Doc: "Which brokers get which replicas."},
	{Name: "replication-factor", Arity: options.One, Value: "Integer: replication factor", Doc: "How many replicas each partition is to have."},
	{Name: "topic", Arity: options.One, Value: "String: topic", Doc: "The topic; a regular expression except with --create."},
	{Name: "topic-id", Arity: options.One, Value: "String: topic-id", Doc: "With --describe: the topic's id instead of its name."},
	{Name: "topics-with-overrides", Doc: "With --describe: only topics with settings of their own."},
	{Name: "unavailable-partitions", Doc: "With --describe: only partitions without a living leader."},
	{Name: "under-min-isr-partitions", Doc: "With --describe: only partitions with fewer in-sync replicas than min.insync.replicas asks for. Not with --zookeeper."},
	{Name: "under-replicated-partitions", Doc: "With --describe: only partitions with a replica out of sync."},
	{Name: "version", Doc: "Print the version."},
	{Name: "zookeeper", Arity: options.One, Value: "String: hosts", Doc: "Deprecated: work on ZooKeeper directly, as host:port[,host:port...][/chroot]."},
}

// topicAsked is what kafka-topics was asked to do, after the arguments were found to make sense.
type topicAsked struct {
	topic, topicID        string
	partitions            int32 // -1: not given
	replicationFactor     int16 // -1: not given
	assignment            [][]int32
	configs               []string
	deleteConfigs         []string
	ifExists, ifNotExists bool
	excludeInternal       bool
	disableRackAware      bool
	overridesOnly         bool
	filter                string // which partitions --describe shows: one of the -partitions options, or ""
}

// topicDescription is a topic as --describe shows it.
type topicDescription struct {
	cluster.Topic
	deleting bool
}

// topicService does the work through one of the two doors.
type topicService interface {
	create(a topicAsked) error
	alter(a topicAsked, names []string) error
	delete(names []string) error
	list() (names []string, deleting map[string]bool, err error)
	describe(names []string, a topicAsked) ([]topicDescription, error)
	close()
}

// Topics is kafka-topics.
func Topics(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.admin.TopicCommand$", intro: "This tool helps to create, delete, describe, or change a topic.", options: topicsOptions, misread: exception, stdout: stdout, stderr: stderr}
	if compat39() {
		f.class = "org.apache.kafka.tools.TopicCommand"
	}
	if len(args) == 0 {
		return f.usage("Create, delete, describe, or change a topic.")
	}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if reason := wrongTopicsCall(set); reason != "" {
		return f.usage(reason)
	}
	if compat39() && !set.Has("zookeeper") && !set.Has("bootstrap-server") {
		return f.uncaught(&badArgument{"--bootstrap-server must be specified"})
	}
	if set.Has("zookeeper") == set.Has("bootstrap-server") {
		fmt.Fprintln(stderr, `Exception in thread "main" java.lang.IllegalArgumentException: Only one of --bootstrap-server or --zookeeper must be specified`)
		return 1
	}
	if err := topics(f, set); err != nil {
		fmt.Fprintf(stdout, "Error while executing topic command : %s\n", err)
		f.logError(err)
		return 1
	}
	return 0
}

// wrongTopicsCall says why options do not go together, or "".
func wrongTopicsCall(set *options.Set) string {
	actions := 0
	for _, action := range []string{"list", "describe", "create", "alter", "delete"} {
		if set.Has(action) {
			actions++
		}
	}
	if actions != 1 {
		return "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
	}
	for _, action := range []string{"create", "alter", "delete"} {
		if set.Has(action) && !set.Has("topic") {
			return missing("topic")
		}
	}
	if set.Has("create") && set.Has("zookeeper") && !set.Has("replica-assignment") {
		for _, needed := range []string{"partitions", "replication-factor"} {
			if !set.Has(needed) {
				return missing(needed)
			}
		}
	}
	if set.Has("alter") && set.Has("bootstrap-server") {
		if set.Has("config") || set.Has("delete-config") {
			both := "[bootstrap-server],[config]"
			if compat39() {
				both = "[[bootstrap-server], [config]]"
			}
			return fmt.Sprintf("Option combination \"%s\" can't be used with option \"[alter]\" (the kafka-configs CLI supports altering topic configs with a --bootstrap-server option)", both)
		}
		if !set.Has("partitions") {
			return missing("partitions")
		}
	}
	for _, rule := range []struct {
		option  string
		allowed []string
	}{
		{"config", []string{"create", "alter"}}, {"delete-config", []string{"alter"}}, {"partitions", []string{"create", "alter"}}, {"replication-factor", []string{"create"}},
		{"replica-assignment", []string{"create", "alter"}}, {"under-replicated-partitions", []string{"describe"}}, {"under-min-isr-partitions", []string{"describe"}},
		{"at-min-isr-partitions", []string{"describe"}}, {"unavailable-partitions", []string{"describe"}}, {"topics-with-overrides", []string{"describe"}},
		{"if-exists", []string{"alter", "delete", "describe"}}, {"if-not-exists", []string{"create"}}, {"exclude-internal", []string{"list", "describe"}},
	} {
		for _, action := range []string{"list", "describe", "create", "alter", "delete"} {
			if set.Has(rule.option) && set.Has(action) && !slices.Contains(rule.allowed, action) {
				return notTogether(rule.option, action)
			}
		}
	}
	for _, pair := range [][2]string{
		{"replica-assignment", "partitions"}, {"replica-assignment", "replication-factor"}, {"command-config", "zookeeper"}, {"under-min-isr-partitions", "zookeeper"},
		{"at-min-isr-partitions", "zookeeper"}, {"delete-config", "bootstrap-server"}, {"disable-rack-aware", "bootstrap-server"},
	} {
		if set.Has(pair[0]) && set.Has(pair[1]) && !(pair[0] == "replica-assignment" && set.Has("alter")) {
			return notTogether(pair[0], pair[1])
		}
	}
	return atMostOne(set, []string{"under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions", "unavailable-partitions", "topics-with-overrides"})
}

func readTopicsCall(set *options.Set) (topicAsked, error) {
	a := topicAsked{configs: set.Values("config"), deleteConfigs: set.Values("delete-config"), ifExists: set.Has("if-exists"), ifNotExists: set.Has("if-not-exists"),
		excludeInternal: set.Has("exclude-internal"), disableRackAware: set.Has("disable-rack-aware"), overridesOnly: set.Has("topics-with-overrides")}
	for _, filter := range []string{"under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions", "unavailable-partitions"} {
		if set.Has(filter) {
			a.filter = filter
		}
	}
	var err error
	if a.topic, err = set.Value("topic"); err != nil {
		return a, err
	}
	if a.topicID, err = set.Value("topic-id"); err != nil {
		return a, err
	}
	n, err := set.Int("partitions", -1)
	if err != nil {
		return a, err
	}
	a.partitions = int32(n)
	if set.Has("partitions") && n < 1 && (set.Has("create") || set.Has("alter")) {
		if compat39() {
			return a, &badArgument{"The partitions must be greater than 0"}
		}
		if set.Has("bootstrap-server") {
			return a, &badArgument{"The partitions must be greater than 0"}
		}
	}
	if n, err = set.Int("replication-factor", -1); err != nil {
		return a, err
	}
	a.replicationFactor = int16(n)
	if set.Has("replication-factor") && (n < 1 || n > 1<<15-1) && set.Has("bootstrap-server") {
		return a, &badArgument{fmt.Sprintf("The replication factor must be between 1 and %d inclusive", 1<<15-1)}
	}
	text, err := set.Value("replica-assignment")
	if err != nil {
		return a, err
	}
	if set.Has("replica-assignment") {
		if a.assignment, err = parseAssignment(text); err != nil {
			return a, err
		}
	}
	return a, nil
}

// parseAssignment reads 1:2,2:3: the replicas of each partition, separated by colons.
func parseAssignment(text string) ([][]int32, error) {
	var assignment [][]int32
	for i, part := range strings.Split(text, ",") {
		var replicas []int32
		for _, id := range strings.Split(part, ":") {
			n, err := strconv.ParseInt(strings.TrimSpace(id), 10, 32)
			if err != nil {
				return nil, &badArgument{fmt.Sprintf("For input string: %q", id)}
			}
			if slices.Contains(replicas, int32(n)) {
				return nil, &badArgument{fmt.Sprintf("Partition replica lists may not contain duplicate entries: %d", n)}
			}
			replicas = append(replicas, int32(n))
		}
		if i > 0 && len(replicas) != len(assignment[0]) {
			return nil, &badArgument{fmt.Sprintf("Partition %d has different replication factor: [%s]", i, joinInts(replicas))}
		}
		assignment = append(assignment, replicas)
	}
	return assignment, nil
}

func joinInts(ids []int32) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = strconv.Itoa(int(id))
	}
	return strings.Join(parts, ",")
}

func topics(f face, set *options.Set) error {
	a, err := readTopicsCall(set)
	if err != nil {
		return err
	}
	service, err := openTopicService(f, set)
	if err != nil {
		return err
	}
	defer service.close()

	switch {
	case set.Has("create"):
		return createTopic(f, service, a)
	case set.Has("list"):
		return listTopics(f, service, a)
	}
	if a.topicID != "" {
		return describeTopics(f, service, a, nil)
	}
	names, err := matching(service, a)
	if err != nil {
		return err
	}
	switch {
	case set.Has("alter"):
		if len(names) == 0 {
			return nil
		}
		return service.alter(a, names)
	case set.Has("delete"):
		if len(names) == 0 {
			return nil
		}
		return service.delete(names)
	default:
		return describeTopics(f, service, a, names)
	}
}

func openTopicService(f face, set *options.Set) (topicService, error) {
	if set.Has("zookeeper") {
		servers, err := set.Value("zookeeper")
		if err != nil {
			return nil, err
		}
		return openTopicsByZooKeeper(f, servers)
	}
	client, err := adminClient.connect(set)
	if err != nil {
		return nil, err
	}
	return &topicsByBroker{client, cluster.New(client)}, nil
}

func createTopic(f face, service topicService, a topicAsked) error {
	if strings.ContainsAny(a.topic, "._") {
		fmt.Fprintln(f.stdout, "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To avoid issues it is best to use either, but not both.")
	}
	if err := knownConfigs(a.configs); err != nil {
		return err
	}
	if err := service.create(a); err != nil {
		if a.ifNotExists && topicExists(err) {
			return nil
		}
		return err
	}
	fmt.Fprintf(f.stdout, "Created topic %s.\n", a.topic)
	return nil
}

// knownConfigs checks that settings have the form name=value and names that there are.
func knownConfigs(settings []string) error {
	for _, c := range settings {
		name, _, ok := strings.Cut(c, "=")
		if !ok {
			return &badArgument{"requirement failed: Invalid topic config: all configs to be added must be in the format \"key=val\"."}
		}
		if config.Topic.Lookup(strings.TrimSpace(name)) == nil {
			return &badArgument{"Unknown topic config name: " + strings.TrimSpace(name)}
		}
	}
	return nil
}

// matching lists the topics that --topic names, which is a regular expression; a name that fits none is an error unless --if-exists was given.
func matching(service topicService, a topicAsked) ([]string, error) {
	all, _, err := service.list()
	if err != nil {
		return nil, err
	}
	sort.Strings(all)
	var pattern *regexp.Regexp
	if a.topic != "" {
		if pattern, err = regexp.Compile("^(?:" + strings.ReplaceAll(strings.Trim(strings.TrimSpace(a.topic), `"'`), ",", "|") + ")$"); err != nil {
			return nil, &badArgument{a.topic + " is an invalid regex."}
		}
	}
	names := slices.DeleteFunc(all, func(name string) bool {
		return pattern != nil && !pattern.MatchString(name) || a.excludeInternal && cluster.IsInternal(name)
	})
	if len(names) == 0 && a.topic != "" && !a.ifExists {
		if compat39() {
			return nil, &badArgument{fmt.Sprintf("Topic 'Optional[%s]' does not exist as expected", a.topic)}
		}
		return nil, &badArgument{fmt.Sprintf("Topic '%s' does not exist as expected", a.topic)}
	}
	return names, nil
}

func listTopics(f face, service topicService, a topicAsked) error {
	names, deleting, err := service.list()
	if err != nil {
		return err
	}
	sort.Strings(names)
	a.ifExists = true
	if a.topic != "" {
		if names, err = matching(service, a); err != nil {
			return err
		}
	}
	printed := 0
	for _, name := range names {
		if a.excludeInternal && cluster.IsInternal(name) {
			continue
		}
		printed++
		if deleting[name] {
			name += " - marked for deletion"
		}
		fmt.Fprintln(f.stdout, name)
	}
	if printed == 0 && compat39() {
		fmt.Fprintln(f.stdout)
	}
	return nil
}

func describeTopics(f face, service topicService, a topicAsked, names []string) error {
	described, err := service.describe(names, a)
	if err != nil {
		return err
	}
	for _, t := range described {
		if a.overridesOnly && len(t.Overrides) == 0 {
			continue
		}
		if a.filter == "" {
			printTopic(f.stdout, t)
		}
		if a.overridesOnly {
			continue
		}
		for _, p := range t.Partitions {
			if shown(p, t, a.filter) {
				printPartition(f.stdout, t, p)
			}
		}
	}
	return nil
}

func printTopic(w io.Writer, t topicDescription) {
	fmt.Fprintf(w, "Topic: %s", t.Name)
	if t.ID != "" {
		fmt.Fprintf(w, "\tTopicId: %s", t.ID)
	}
	configs := make([]string, len(t.Overrides))
	for i, s := range t.Overrides {
		configs[i] = s.String()
	}
	fmt.Fprintf(w, "\tPartitionCount: %d\tReplicationFactor: %d\tConfigs: %s", len(t.Partitions), t.ReplicationFactor, strings.Join(configs, ","))
	if t.deleting {
		fmt.Fprint(w, "\tMarkedForDeletion: true")
	}
	fmt.Fprintln(w)
}

func printPartition(w io.Writer, t topicDescription, p cluster.Partition) {
	leader := "none"
	if !p.Unavailable() {
		leader = strconv.Itoa(int(p.Leader))
	}
	fmt.Fprintf(w, "\tTopic: %s\tPartition: %d\tLeader: %s\tReplicas: %s\tIsr: %s", t.Name, p.ID, leader, joinInts(p.Replicas), joinInts(p.ISR))
	if len(p.Adding) > 0 || len(p.Removing) > 0 {
		fmt.Fprintf(w, "\tAdding Replicas: %s\tRemoving Replicas: %s", joinInts(p.Adding), joinInts(p.Removing))
	}
	if compat39() {
		fmt.Fprint(w, "\tElr: N/A\tLastKnownElr: N/A")
	}
	if t.deleting {
		fmt.Fprint(w, "\tMarkedForDeletion: true")
	}
	fmt.Fprintln(w)
}

// shown tells whether --describe shows a partition under the filter that was given.
func shown(p cluster.Partition, t topicDescription, filter string) bool {
	switch filter {
	case "under-replicated-partitions":
		return p.UnderReplicated()
	case "under-min-isr-partitions":
		return p.UnderMinISR(t.MinISR)
	case "at-min-isr-partitions":
		return p.AtMinISR(t.MinISR)
	case "unavailable-partitions":
		return p.Unavailable()
	}
	return true
}
