package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/admin"
	"barnabas/admin/cluster"
	"barnabas/tools/zkaccess"
	"barnabas/zkstate"
)

// topicsByZooKeeper works on ZooKeeper directly, as --zookeeper wants it and as tools did before 3.0: what it writes, the controller acts on.
type topicsByZooKeeper struct {
	f     face
	zk    *zkstate.Client
	admin *admin.Admin
}

// connectZooKeeper opens a session for a tool, as a file says that the option zk-tls-config-file named; "" is in plaintext. Settings behind prefix come first.
func connectZooKeeper(servers, tlsFile, prefix string) (*zkstate.Client, error) {
	access, err := zkaccess.Read(tlsFile, prefix, os.Getenv("KAFKA_OPTS"))
	if err != nil {
		return nil, err
	}
	return openZooKeeper(servers, access, access.Known(), toolsTimeout, toolsTimeout)
}

// toolsTimeout is how long the originals wait for ZooKeeper, and for how long they ask to be remembered.
const toolsTimeout = 30 * time.Second

func openZooKeeper(servers string, access zkaccess.Access, secure bool, session, connection time.Duration) (*zkstate.Client, error) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	return zkstate.Connect(zkstate.Config{Servers: servers, TLS: access.TLS, SASL: access.Account, SecureACLs: secure, SessionTimeout: session, ConnectTimeout: connection, Log: logrus.NewEntry(quiet)})
}

func openTopicsByZooKeeper(f face, servers string) (topicService, error) {
	zk, err := connectZooKeeper(servers, "", "")
	if err != nil {
		return nil, err
	}
	adm, err := adminOfTool(zk, nil)
	if err != nil {
		zk.Close()
		return nil, err
	}
	return &topicsByZooKeeper{f, zk, adm}, nil
}

func (s *topicsByZooKeeper) close() { s.zk.Close() }

func (s *topicsByZooKeeper) create(a topicAsked) error {
	spec := admin.TopicSpec{Name: a.topic, Partitions: a.partitions, ReplicationFactor: a.replicationFactor}
	if a.partitions < 1 && a.assignment == nil {
		return &badArgument{"Number of partitions must be larger than 0."}
	}
	if a.replicationFactor < 1 && a.assignment == nil {
		return &badArgument{"Replication factor must be larger than 0."}
	}
	if a.assignment != nil {
		spec.Assignment = map[int32][]int32{}
		for i, replicas := range a.assignment {
			spec.Assignment[int32(i)] = replicas
		}
	}
	for _, c := range a.configs {
		name, value, _ := strings.Cut(c, "=")
		value = strings.TrimSpace(value)
		spec.Configs = append(spec.Configs, admin.ConfigEntry{Name: strings.TrimSpace(name), Value: &value})
	}
	if reason := illegalName(a.topic); reason != "" {
		return &badArgument{reason}
	}
	return s.admin.CreateTopics(context.Background(), []admin.TopicSpec{spec}, false)[0].Err
}

const longestName = 249

// illegalName says why a topic may not have this name, in the words of the releases that had this door.
func illegalName(name string) string {
	switch {
	case name == "":
		return "Topic name is illegal, it can't be empty"
	case name == "." || name == "..":
		return `Topic name cannot be "." or ".."`
	case len(name) > longestName:
		return fmt.Sprintf("Topic name is illegal, it can't be longer than %d characters, topic name: %s", longestName, name)
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "":
		return fmt.Sprintf(`Topic name "%s" is illegal, it contains a character other than ASCII alphanumerics, '.', '_' and '-'`, name)
	}
	return ""
}

func (s *topicsByZooKeeper) alter(a topicAsked, names []string) error {
	if err := knownConfigs(a.configs); err != nil {
		return err
	}
	for _, name := range names {
		if len(a.configs) > 0 || len(a.deleteConfigs) > 0 {
			fmt.Fprintln(s.f.stdout, "WARNING: Altering topic configuration from this script has been deprecated and may be removed in future releases.")
			fmt.Fprintln(s.f.stdout, "         Going forward, please use kafka-configs.sh for this functionality")
			if err := s.alterConfig(name, a); err != nil {
				return err
			}
			fmt.Fprintf(s.f.stdout, "Updated config for topic %s.\n", name)
		}
		if a.partitions < 0 {
			continue
		}
		fmt.Fprintln(s.f.stdout, "WARNING: If partitions are increased for a topic that has a key, the partition logic or ordering of the messages will be affected")
		if err := s.enlarge(name, a); err != nil {
			return err
		}
		fmt.Fprintln(s.f.stdout, "Adding partitions succeeded!")
	}
	return nil
}

func (s *topicsByZooKeeper) alterConfig(name string, a topicAsked) error {
	var ops []admin.ConfigOp
	for _, c := range a.configs {
		key, value, _ := strings.Cut(c, "=")
		value = strings.TrimSpace(value)
		ops = append(ops, admin.ConfigOp{Name: strings.TrimSpace(key), Op: admin.OpSet, Value: &value})
	}
	for _, key := range a.deleteConfigs {
		ops = append(ops, admin.ConfigOp{Name: strings.TrimSpace(key), Op: admin.OpDelete})
	}
	return s.admin.IncrementalAlterConfigs(context.Background(), []admin.IncrementalSpec{{Resource: admin.Resource{Type: admin.ResourceTopic, Name: name}, Ops: ops}}, false)[0].Err
}

func (s *topicsByZooKeeper) enlarge(name string, a topicAsked) error {
	current, err := s.read(name)
	if err != nil {
		return err
	}
	if have := len(current.Partitions); int(a.partitions) <= have {
		return &badArgument{fmt.Sprintf("The number of partitions for a topic can only be increased. Topic %s currently has %d partitions, %d would not be an increase.", name, have, a.partitions)}
	}
	spec := admin.PartitionsSpec{Name: name, Count: a.partitions}
	if len(a.assignment) > len(current.Partitions) {
		spec.Assignment = a.assignment[len(current.Partitions):]
	}
	return s.admin.CreatePartitions(context.Background(), []admin.PartitionsSpec{spec}, false)[0].Err
}

func (s *topicsByZooKeeper) delete(names []string) error {
	for _, r := range s.admin.DeleteTopics(context.Background(), names) {
		switch {
		case r.Err != nil:
			return r.Err
		case r.Already:
			fmt.Fprintf(s.f.stdout, "Topic %s is already marked for deletion.\n", r.Name)
		default:
			fmt.Fprintf(s.f.stdout, "Topic %s is marked for deletion.\nNote: This will have no impact if delete.topic.enable is not set to true.\n", r.Name)
		}
	}
	return nil
}

func (s *topicsByZooKeeper) list() ([]string, map[string]bool, error) {
	ctx := context.Background()
	names, err := s.children(ctx, zkstate.TopicsPath)
	if err != nil {
		return nil, nil, err
	}
	marked, err := s.children(ctx, zkstate.DeleteTopicsPath)
	deleting := map[string]bool{}
	for _, name := range marked {
		deleting[name] = true
	}
	return names, deleting, err
}

func (s *topicsByZooKeeper) children(ctx context.Context, path string) ([]string, error) {
	r, err := s.zk.One(ctx, zkstate.Children(path))
	if errors.Is(err, zkstate.ErrNoNode) {
		return nil, nil
	}
	return r.Children, err
}

func (s *topicsByZooKeeper) describe(names []string, _ topicAsked) ([]topicDescription, error) {
	ids, err := s.children(context.Background(), zkstate.BrokerIDsPath)
	if err != nil {
		return nil, err
	}
	alive := map[string]bool{}
	for _, id := range ids {
		alive[id] = true
	}
	_, deleting, err := s.list()
	if err != nil {
		return nil, err
	}
	var described []topicDescription
	for _, name := range names {
		d, err := s.read(name)
		if errors.Is(err, zkstate.ErrNoNode) {
			continue // deleted since it was listed
		}
		if err != nil {
			return nil, err
		}
		d.deleting = deleting[name]
		for i := range d.Partitions {
			d.Partitions[i].LeaderAlive = alive[fmt.Sprint(d.Partitions[i].Leader)]
		}
		described = append(described, d)
	}
	return described, nil
}

// read reads a topic with its partitions' states and its settings, in one pipelined batch after its assignment.
func (s *topicsByZooKeeper) read(name string) (topicDescription, error) {
	ctx := context.Background()
	r, err := s.zk.One(ctx, zkstate.Get(zkstate.TopicPath(name)))
	if err != nil {
		return topicDescription{}, err
	}
	topic, err := zkstate.DecodeTopicAssignment(r.Data)
	if err != nil {
		return topicDescription{}, err
	}
	d := topicDescription{Topic: cluster.Topic{Name: name}}
	if topic.ID != (zkstate.TopicID{}) {
		d.ID = topic.ID.String()
	}
	var ids []int32
	for id := range topic.Partitions {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	ops := []zkstate.Op{zkstate.Get(zkstate.EntityPath(zkstate.TopicEntity, name))}
	for _, id := range ids {
		ops = append(ops, zkstate.Get(zkstate.PartitionStatePath(name, id)))
	}
	results, err := s.zk.Do(ctx, ops)
	if err != nil {
		return topicDescription{}, err
	}
	if results[0].Err == nil {
		settings, err := zkstate.DecodeEntityConfig(results[0].Data)
		if err != nil {
			return topicDescription{}, err
		}
		for key, value := range settings {
			d.Overrides = append(d.Overrides, cluster.Setting{Name: key, Value: value})
		}
		slices.SortFunc(d.Overrides, func(a, b cluster.Setting) int { return cmp.Compare(a.Name, b.Name) })
	}
	for i, id := range ids {
		p := cluster.Partition{ID: id, Leader: -1, Replicas: topic.Partitions[id].Replicas}
		if i == 0 {
			d.ReplicationFactor = len(p.Replicas)
		}
		if results[i+1].Err == nil {
			state, err := zkstate.DecodePartitionState(results[i+1].Data)
			if err != nil {
				return topicDescription{}, err
			}
			p.Leader, p.ISR = state.Leader, state.ISR
		}
		d.Partitions = append(d.Partitions, p)
	}
	return d, nil
}
