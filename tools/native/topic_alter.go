package native

import (
	"strconv"

	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func topicAlter() *cli.Command {
	return command{
		name: "alter", usage: "change settings, partitions and the replication factor of a topic", arguments: "TOPIC", least: 1, most: 1, alters: true,
		help: `Changes a topic, and says what each thing was and is. With --dry-run brokers are asked whether they would do it.

More partitions change where keyed records go. Another replication factor starts a reassignment, which adds replicas in other racks and on brokers that have few, or takes the last ones away, and never changes the preferred leader; 'barnabas reassign watch' shows how it goes on.

Fields: dry_run, changes (kind, name, action, what, from, to, done, error).

    barnabas topic alter orders --config retention.ms=86400000 --delete-config segment.bytes
    barnabas topic alter orders --replication-factor 3 --dry-run`,
		flags: []cli.Flag{
			many("config", "`NAME=VALUE` of a setting to set; any number of times"),
			many("delete-config", "`NAME` of a setting to take back; any number of times"),
			&cli.IntFlag{Name: "partitions", Usage: "how many partitions it is to have"},
			&cli.IntFlag{Name: "replication-factor", Usage: "how many replicas each partition is to have"},
		},
		run: alterTopic,
	}.build()
}

func alterTopic(c *call) (document, error) {
	name := c.Args().First()
	set, err := settings(c.values("config"))
	if err != nil {
		return nil, err
	}
	remove := c.values("delete-config")
	if len(set)+len(remove) == 0 && !c.IsSet("partitions") && !c.IsSet("replication-factor") {
		return nil, wrongUsage("one of --config, --delete-config, --partitions and --replication-factor has to be given")
	}
	if err := c.needTopics([]string{name}); err != nil {
		return nil, err
	}
	topics, err := c.cluster.Topics(c.ctx, []string{name})
	if err != nil {
		return nil, err
	}
	a := alteration{c, topics[0], &changes{documentVersion, c.Bool("dry-run"), []change{}}}
	var failures []error
	if len(set)+len(remove) > 0 {
		failures = append(failures, a.configs(set, remove))
	}
	if c.IsSet("partitions") {
		n, err := positive(c, "partitions", 1<<31-1)
		if err != nil {
			return nil, err
		}
		err = c.cluster.Enlarge(c.ctx, []cluster.Enlargement{{Topic: name, Count: n}}, a.said.DryRun)
		failures = append(failures, a.result("set", "partitions", words("%d", len(a.topic.Partitions)), words("%d", n), err))
		if err == nil && !a.said.DryRun { // the new ones count for the replication factor
			if topics, err = c.cluster.Topics(c.ctx, []string{name}); err != nil {
				return a.said, err
			}
			a.topic = topics[0]
		}
	}
	if c.IsSet("replication-factor") {
		n, err := positive(c, "replication-factor", 1<<15-1)
		if err != nil {
			return nil, err
		}
		failures = append(failures, a.factor(int(n)))
	}
	return a.said, exitOfFirst(failures)
}

// alteration is the changing of one topic.
type alteration struct {
	*call
	topic cluster.Topic
	said  *changes
}

func (a alteration) result(action, what string, from, to *string, err error) error {
	return a.said.result(change{Kind: "topic", Name: a.topic.Name, Action: action, What: what, From: from, To: to}, err)
}

// configs changes settings, all or none.
func (a alteration) configs(set []cluster.Setting, remove []string) error {
	own := map[string]*string{}
	for _, s := range a.topic.Overrides {
		own[s.Name] = &s.Value
	}
	err := a.cluster.AlterTopicConfig(a.ctx, a.topic.Name, set, remove, a.said.DryRun)
	for _, s := range set {
		_ = a.result("set", s.Name, own[s.Name], &s.Value, err)
	}
	for _, name := range remove {
		_ = a.result("remove", name, own[name], nil, err)
	}
	return err
}

// factor gives the topic's partitions another number of replicas.
func (a alteration) factor(n int) error {
	targets, err := a.planFactor(n)
	if err != nil {
		return a.result("set", "replication factor", words("%d", a.topic.ReplicationFactor), words("%d", n), err)
	}
	var failed map[plan.Partition]error
	if !a.said.DryRun && len(targets) > 0 {
		if failed, err = a.cluster.Reassign(a.ctx, targets.Partitions(), targets); err != nil {
			return a.result("set", "replication factor", words("%d", a.topic.ReplicationFactor), words("%d", n), err)
		}
	}
	var first error
	for _, p := range a.topic.Partitions {
		key := plan.Partition{Topic: a.topic.Name, ID: p.ID}
		if to, moves := targets[key]; moves {
			if err := a.result("set", "replicas of "+strconv.Itoa(int(p.ID)), words("%s", ids(p.Replicas)), words("%s", ids(to)), failed[key]); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

// planFactor works out where the topic's replicas go.
func (a alteration) planFactor(n int) (plan.Assignment, error) {
	w, err := a.cluster.World(a.ctx)
	if err != nil {
		return nil, err
	}
	w.World.Moves = func(p plan.Partition) bool { return p.Topic == a.topic.Name }
	return w.Factor(n)
}

func topicFactor() *cli.Command {
	return command{
		name: "rf", usage: "give a topic another replication factor", arguments: "TOPIC N", least: 2, most: 2, alters: true,
		help: `Starts what 'barnabas plan rf' shows with sizes and brokers: replicas are added in other racks and on brokers that have few, or taken from the end, and the preferred leader stays. 'barnabas reassign watch' shows how it goes on. Partitions that have as many replicas are left alone; those that are being reassigned are refused, and so are those that would lose replicas while one is out of sync.

Fields: dry_run, changes (kind, name, action, what, from, to, done, error).

    barnabas topic rf orders 3 --dry-run`,
		run: func(c *call) (document, error) {
			name := c.Args().First()
			n, err := strconv.ParseInt(c.Args().Get(1), 10, 16)
			if err != nil || n < 1 {
				return nil, wrongUsage("the replication factor %q is not a number from 1 to 32767", c.Args().Get(1))
			}
			if err := c.needTopics([]string{name}); err != nil {
				return nil, err
			}
			topics, err := c.cluster.Topics(c.ctx, []string{name})
			if err != nil {
				return nil, err
			}
			a := alteration{c, topics[0], &changes{documentVersion, c.Bool("dry-run"), []change{}}}
			return a.said, exitOfFirst([]error{a.factor(int(n))})
		},
	}.build()
}
