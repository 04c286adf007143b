package native

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

type topicsDocument struct {
	Version int         `json:"version"`
	Topics  []topicLine `json:"topics"`
}

type topicLine struct {
	Topic             string `json:"topic"`
	ID                string `json:"topic_id"` // "" where brokers know of none
	Internal          bool   `json:"internal"`
	Partitions        int    `json:"partitions"`
	ReplicationFactor int    `json:"replication_factor"`
	UnderReplicated   int    `json:"under_replicated_partitions"`
	Offline           int    `json:"offline_partitions"`
}

func (d *topicsDocument) show(w io.Writer) {
	rows := [][]string{{"TOPIC", "PARTITIONS", "REPLICATION", "UNDER-REPLICATED", "OFFLINE", "INTERNAL"}}
	for _, t := range d.Topics {
		internal := "-"
		if t.Internal {
			internal = "yes"
		}
		rows = append(rows, []string{t.Topic, strconv.Itoa(t.Partitions), strconv.Itoa(t.ReplicationFactor), strconv.Itoa(t.UnderReplicated), strconv.Itoa(t.Offline), internal})
	}
	columns(w, rows)
}

func topicList() *cli.Command {
	return command{
		name: "list", usage: "list topics with the state of their partitions", watched: true,
		help: `Lists all topics by name.

Fields: topic, topic_id, internal, partitions, replication_factor, under_replicated_partitions, offline_partitions.

    barnabas topic list --match 'orders.*' -o json`,
		flags: []cli.Flag{
			&cli.StringFlag{Name: "match", Usage: "only topics whose whole name a regular `EXPRESSION` matches"},
			&cli.BoolFlag{Name: "exclude-internal", Usage: "leave out the topics of the coordinators"},
		},
		run: func(c *call) (document, error) {
			pattern, err := regexp.Compile("^(?:" + c.String("match") + ")$")
			if err != nil {
				return nil, wrongUsage("--match: %v", err)
			}
			topics, err := c.cluster.AllTopics(c.ctx)
			if err != nil {
				return nil, err
			}
			d := &topicsDocument{documentVersion, []topicLine{}}
			for _, t := range topics {
				if c.IsSet("match") && !pattern.MatchString(t.Name) || c.Bool("exclude-internal") && t.Internal {
					continue
				}
				d.Topics = append(d.Topics, topicLineOf(t))
			}
			return d, nil
		},
	}.build()
}

func topicLineOf(t cluster.Topic) topicLine {
	line := topicLine{Topic: t.Name, ID: t.ID, Internal: t.Internal, Partitions: len(t.Partitions), ReplicationFactor: t.ReplicationFactor}
	for _, p := range t.Partitions {
		if p.UnderReplicated() {
			line.UnderReplicated++
		}
		if p.Unavailable() {
			line.Offline++
		}
	}
	return line
}

type describedTopics struct {
	Version int              `json:"version"`
	Topics  []describedTopic `json:"topics"`
}

type describedTopic struct {
	Topic             string            `json:"topic"`
	ID                string            `json:"topic_id"`
	Internal          bool              `json:"internal"`
	ReplicationFactor int               `json:"replication_factor"`
	MinISR            int               `json:"min_insync_replicas"`
	Configs           map[string]string `json:"configs"` // the topic's own
	Partitions        []partitionLine   `json:"partitions"`
}

type partitionLine struct {
	Partition   int32   `json:"partition"`
	Leader      *int64  `json:"leader"`
	LeaderEpoch *int64  `json:"leader_epoch"`
	Preferred   *int64  `json:"preferred_leader"`
	Replicas    []int32 `json:"replicas"`
	ISR         []int32 `json:"isr"`
	Offline     []int32 `json:"offline_replicas"`
	Adding      []int32 `json:"adding_replicas"`
	Removing    []int32 `json:"removing_replicas"`
	Start       *int64  `json:"log_start_offset"`
	End         *int64  `json:"log_end_offset"`
}

func (d *describedTopics) show(w io.Writer) {
	for i, t := range d.Topics {
		if i > 0 {
			fmt.Fprintln(w)
		}
		var configs []string
		for _, name := range slices.Sorted(maps.Keys(t.Configs)) {
			configs = append(configs, name+"="+t.Configs[name])
		}
		fmt.Fprintf(w, "Topic %s  id %s  replication factor %d  min.insync.replicas %d\nConfigs: %s\n\n", t.Topic, orDash(t.ID), t.ReplicationFactor, t.MinISR, orDash(strings.Join(configs, " ")))
		rows := [][]string{{"PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "ADDING", "REMOVING", "LOG-START", "LOG-END"}}
		for _, p := range t.Partitions {
			rows = append(rows, []string{strconv.Itoa(int(p.Partition)), maybe(p.Leader), maybe(p.LeaderEpoch), ids(p.Replicas), ids(p.ISR), ids(p.Adding), ids(p.Removing), maybe(p.Start), maybe(p.End)})
		}
		columns(w, rows)
	}
}

func topicDescribe() *cli.Command {
	return command{
		name: "describe", usage: "show partitions, leaders, replicas, offsets and settings of topics", arguments: "TOPIC...", least: 1, most: -1, watched: true,
		help: `Shows topics as their brokers and leaders tell of them.

Fields of a topic: topic, topic_id, internal, replication_factor, min_insync_replicas, configs (the topic's own), partitions.
Fields of a partition: partition, leader, leader_epoch, preferred_leader, replicas, isr, offline_replicas, adding_replicas, removing_replicas, log_start_offset, log_end_offset. What is not known, such as the leader of a partition that is offline, is null.

    barnabas topic describe orders payments
    barnabas topic describe orders -o json | jq '.topics[].partitions[] | select(.leader == null)'`,
		run: func(c *call) (document, error) {
			names := c.Args().Slice()
			if err := c.needTopics(names); err != nil {
				return nil, err
			}
			topics, err := c.cluster.Topics(c.ctx, names)
			if err != nil {
				return nil, err
			}
			var all []plan.Partition
			for _, t := range topics {
				for _, p := range t.Partitions {
					all = append(all, plan.Partition{Topic: t.Name, ID: p.ID})
				}
			}
			starts, _, err := c.cluster.Offsets(c.ctx, all, cluster.Earliest)
			if err != nil {
				return nil, err
			}
			ends, _, err := c.cluster.Offsets(c.ctx, all, cluster.Latest)
			if err != nil {
				return nil, err
			}
			d := &describedTopics{documentVersion, []describedTopic{}}
			for _, t := range topics {
				d.Topics = append(d.Topics, described(t, starts, ends))
			}
			return d, nil
		},
	}.build()
}

func described(t cluster.Topic, starts, ends map[plan.Partition]int64) describedTopic {
	d := describedTopic{Topic: t.Name, ID: t.ID, Internal: t.Internal, ReplicationFactor: t.ReplicationFactor, MinISR: t.MinISR, Configs: map[string]string{}, Partitions: []partitionLine{}}
	for _, s := range t.Overrides {
		d.Configs[s.Name] = s.Value
	}
	for _, p := range t.Partitions {
		line := partitionLine{Partition: p.ID, LeaderEpoch: known(int64(p.LeaderEpoch)), Preferred: known(int64(p.Preferred())), Replicas: listed(p.Replicas), ISR: listed(p.ISR), Offline: listed(p.Offline),
			Adding: listed(p.Adding), Removing: listed(p.Removing)}
		if !p.Unavailable() {
			line.Leader = known(int64(p.Leader))
		}
		key := plan.Partition{Topic: t.Name, ID: p.ID}
		if at, ok := starts[key]; ok {
			line.Start = &at
		}
		if at, ok := ends[key]; ok {
			line.End = &at
		}
		d.Partitions = append(d.Partitions, line)
	}
	return d
}

// needTopics fails with the names of the topics that are not there.
func (c *call) needTopics(names []string) error {
	there, err := c.cluster.TopicNames(c.ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains(there, name) {
			return &cluster.NotFoundError{Kind: "topic", Name: name}
		}
	}
	return nil
}

// settings reads name=value arguments.
func settings(given []string) ([]cluster.Setting, error) {
	var list []cluster.Setting
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, wrongUsage("%s is not of the form NAME=VALUE", text)
		}
		list = append(list, cluster.Setting{Name: name, Value: strings.TrimSpace(value)})
	}
	return list, nil
}

func topicCreate() *cli.Command {
	return command{
		name: "create", usage: "create topics", arguments: "TOPIC...", least: 1, most: -1, alters: true,
		help: `Creates topics that are alike. What is not given is the cluster's default. With --dry-run the controller is asked whether it would do it.

Fields: dry_run, changes (kind, name, action, what, from, to, done, error).

    barnabas topic create orders --partitions 12 --replication-factor 3 --config cleanup.policy=compact`,
		flags: []cli.Flag{
			&cli.IntFlag{Name: "partitions", Usage: "how many partitions (default: the cluster's)"},
			&cli.IntFlag{Name: "replication-factor", Usage: "how many replicas of each (default: the cluster's)"},
			many("config", "`NAME=VALUE` of a setting; any number of times"),
			&cli.BoolFlag{Name: "if-not-exists", Usage: "leave topics alone that are there"},
		},
		run: func(c *call) (document, error) {
			own, err := settings(c.values("config"))
			if err != nil {
				return nil, err
			}
			spec := cluster.TopicSpec{Partitions: -1, ReplicationFactor: -1, Settings: own}
			if c.IsSet("partitions") {
				if spec.Partitions, err = positive(c, "partitions", 1<<31-1); err != nil {
					return nil, err
				}
			}
			if c.IsSet("replication-factor") {
				n, err := positive(c, "replication-factor", 1<<15-1)
				if err != nil {
					return nil, err
				}
				spec.ReplicationFactor = int16(n)
			}
			d := &changes{documentVersion, c.Bool("dry-run"), []change{}}
			var failures []error
			for _, name := range c.Args().Slice() {
				spec.Name = name
				err := c.cluster.CreateTopic(c.ctx, spec, d.DryRun)
				one := change{Kind: "topic", Name: name, Action: "create", What: layout(spec)}
				if errors.Is(err, kerr.TopicAlreadyExists) && c.Bool("if-not-exists") {
					one.Action, one.What, err = "leave", "it exists", nil
				}
				if cluster.IsUnreachable(err) {
					return nil, err
				}
				failures = append(failures, d.result(one, err))
			}
			return d, exitOfFirst(failures)
		},
	}.build()
}

func positive(c *call, option string, most int) (int32, error) {
	n := c.Int(option)
	if n < 1 || n > most {
		return 0, wrongUsage("--%s %d is not between 1 and %d", option, n, most)
	}
	return int32(n), nil
}

func layout(spec cluster.TopicSpec) string {
	part := func(n int, noun string) string {
		if n < 0 {
			return "default " + noun
		}
		return fmt.Sprintf("%s %d", noun, n)
	}
	return part(int(spec.Partitions), "partitions") + ", " + part(int(spec.ReplicationFactor), "replication factor")
}

func topicDelete() *cli.Command {
	return command{
		name: "delete", usage: "delete topics", arguments: "TOPIC...", least: 1, most: -1, alters: true, risky: true,
		help: `Deletes the topics that are named; there are no patterns. With --dry-run it asks all brokers what would be lost: how large each topic is, and which groups have read it. When one of them is not there, nothing is deleted, unless --if-exists is given. At a terminal the first name has to be typed; elsewhere --yes has to be given.

Fields: dry_run, changes (kind, name, action, what, from, to, done, error).

    barnabas topic delete orders --dry-run`,
		flags: []cli.Flag{&cli.BoolFlag{Name: "if-exists", Usage: "pass over topics that are not there"}},
		run: func(c *call) (document, error) {
			names := c.Args().Slice()
			if err := c.sure("deleting "+strings.Join(names, ", "), names[0]); err != nil {
				return nil, err
			}
			there, err := c.cluster.TopicNames(c.ctx)
			if err != nil {
				return nil, err
			}
			if c.Bool("if-exists") {
				names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(there, name) })
			}
			if err := c.needTopics(names); err != nil {
				return nil, err
			}
			d := &changes{documentVersion, c.Bool("dry-run"), []change{}}
			if d.DryRun {
				lost, err := c.whatWouldBeLost(names)
				if err != nil {
					return nil, err
				}
				for _, name := range names {
					_ = d.result(change{Kind: "topic", Name: name, Action: "delete", What: lost[name]}, nil)
				}
				return d, nil
			}
			var failures []error
			for _, name := range names {
				failures = append(failures, d.result(change{Kind: "topic", Name: name, Action: "delete"}, notYetDeleted(c.cluster.DeleteTopics(c.ctx, []string{name}))))
			}
			return d, exitOfFirst(failures)
		},
	}.build()
}

// notYetDeleted words that the controller has taken a deletion up and not ended it.
func notYetDeleted(err error) error {
	if errors.Is(err, kerr.RequestTimedOut) {
		return fmt.Errorf("it is marked for deletion and goes when all brokers that have replicas of it are there: %w", err)
	}
	return err
}

// whatWouldBeLost tells of topics how large they are and who reads them.
func (c *call) whatWouldBeLost(names []string) (map[string]string, error) {
	lost := map[string]string{}
	if len(names) == 0 {
		return lost, nil
	}
	topics, err := c.cluster.Topics(c.ctx, names)
	if err != nil {
		return nil, err
	}
	sizes, err := c.cluster.TopicSizes(c.ctx)
	if err != nil {
		return nil, err
	}
	readers, err := c.cluster.Readers(c.ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range topics {
		who := "no group reads it"
		if groups := readers[t.Name]; groups != nil {
			who = "read by " + strings.Join(groups, ", ")
		}
		lost[t.Name] = fmt.Sprintf("%s, %s on all brokers, %s", count(len(t.Partitions), "partition"), cluster.ByteCount(sizes[t.Name]), who)
	}
	return lost, nil
}
