package native

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// goal is what a plan is for: a sub-command of plan.
type goal struct {
	name, usage, arguments string
	least, most            int
	help                   string
	flags                  []cli.Flag
	plan                   func(c *call, w *cluster.World) (plan.Assignment, error)
}

var goals = []goal{
	{"drain", "take everything off brokers", "BROKER...", 1, -1, "Brokers may be dead. What they have goes to the others, or with --to to some; nothing else moves.",
		[]cli.Flag{&cli.StringFlag{Name: "to", Usage: "only to brokers with these `IDS`, as 4,5"}},
		func(c *call, w *cluster.World) (plan.Assignment, error) { return drained(c, w, c.Args().Slice()) }},
	{"replace", "put one broker in the place of another", "OLD NEW", 2, 2, "The old one may be dead. The new one comes in the same places, and so leads what the other led.", nil,
		func(c *call, w *cluster.World) (plan.Assignment, error) {
			old, err := brokerID(c.Args().Get(0))
			if err != nil {
				return nil, err
			}
			by, err := aliveIDs(w, c.Args().Slice()[1:])
			if err != nil {
				return nil, err
			}
			return w.Replace(old, by[0])
		}},
	{"fill", "give new brokers their share", "BROKER...", 1, -1, "Replicas come from the brokers that have most, until all have as many. Nothing moves between the others.", nil,
		func(c *call, w *cluster.World) (plan.Assignment, error) {
			ids, err := aliveIDs(w, c.Args().Slice())
			if err != nil {
				return nil, err
			}
			return w.Fill(ids)
		}},
	{"rf", "give topics another replication factor", "N", 1, 1, "Replicas are added in other racks and on brokers that have few, or taken from the end. The preferred leader stays.", nil,
		func(c *call, w *cluster.World) (plan.Assignment, error) {
			n, err := strconv.ParseInt(c.Args().First(), 10, 16)
			if err != nil || n < 1 {
				return nil, wrongUsage("the replication factor %q is not a number from 1 to 32767", c.Args().First())
			}
			if !scoped(c) {
				return nil, wrongUsage("--topic or --match has to say which topics")
			}
			to, err := w.Factor(int(n))
			return w.Changes(to), err
		}},
	{"racks", "spread the replicas of partitions over the racks", "", 0, 0, "Moves only replicas of partitions that have more in one rack than they must have.", nil,
		func(c *call, w *cluster.World) (plan.Assignment, error) { return w.SpreadRacks() }},
	{"spread", "even out replicas and leaders", "", 0, 0, "Over racks first, then of each topic and of all over the brokers, with the fewest bytes moved. kafka-reassign-partitions --generate proposes the same.", nil,
		func(c *call, w *cluster.World) (plan.Assignment, error) { return w.Spread() }},
	{"leaders", "even out preferred leaders", "", 0, 0, "Changes only the order of replicas. No data moves.", nil,
		func(c *call, w *cluster.World) (plan.Assignment, error) { return w.EvenLeaders() }},
	{"bytes", "even out what brokers store", "", 0, 0, "Moves replicas from the fullest brokers to the emptiest, never more bytes than that takes off their difference; what differs by less than a twentieth of the mean is left.", nil,
		func(c *call, w *cluster.World) (plan.Assignment, error) { return w.EvenBytes() }},
}

const planFields = `Fields: goal, partitions (what kafka-reassign-partitions and 'barnabas reassign run' read), moves (topic, partition, from, to, bytes, preferred_leader_from, preferred_leader_to), brokers (broker, rack, replicas, preferred_leaders, bytes: each before and after; bytes_in, bytes_out, free_bytes, free_bytes_after), replicas_moved, bytes_moved, preferred_leaders_changed, partitions_crowded_in_racks (before and after), smallest_isr, smallest_isr_partition, warnings, notes, rollback (a file that takes it back).

    barnabas plan drain 3 --save moves.json --rollback back.json
    barnabas plan spread -o json | barnabas reassign run - --throttle 50MB/s`

// scope are the options that say which topics a plan may touch.
func scope() []cli.Flag {
	return []cli.Flag{
		many("topic", "move only partitions of `TOPIC`; any number of times"),
		&cli.StringFlag{Name: "match", Usage: "move only partitions of topics whose whole name a regular `EXPRESSION` matches"},
	}
}

func planFiles() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "save", Usage: "write the plan into a new `FILE`"},
		&cli.StringFlag{Name: "rollback", Usage: "write what takes it back into a new `FILE`"},
	}
}

func planCommand() *cli.Command {
	var commands []*cli.Command
	for _, g := range goals {
		commands = append(commands, command{
			name: g.name, usage: g.usage, arguments: g.arguments, least: g.least, most: g.most,
			help:  g.help + " Nothing is changed; 'barnabas reassign run' carries a plan out. The same cluster gives the same plan. What is being reassigned counts as if that were over.\n\n" + planFields,
			flags: slices.Concat(g.flags, scope(), planFiles()),
			run: func(c *call) (document, error) {
				d, _, _, err := c.plan(strings.TrimSpace(g.name+" "+strings.Join(c.Args().Slice(), " ")), g.plan)
				if err != nil {
					return nil, err
				}
				return d, d.files(c)
			},
		}.build())
	}
	return parent("plan", "work out moves of replicas: drain, replace, fill, spread and more", commands...)
}

// plan works out a plan for the topics that were named.
func (c *call) plan(name string, of func(c *call, w *cluster.World) (plan.Assignment, error)) (*planDocument, *cluster.World, plan.Assignment, error) {
	topics := c.values("topic")
	pattern, err := regexp.Compile("^(?:" + c.String("match") + ")$")
	if err != nil {
		return nil, nil, nil, wrongUsage("--match: %v", err)
	}
	if len(topics) > 0 {
		if err := c.needTopics(topics); err != nil {
			return nil, nil, nil, err
		}
	}
	w, err := c.cluster.World(c.ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if scoped(c) {
		w.World.Moves = func(p plan.Partition) bool {
			return slices.Contains(topics, p.Topic) || c.IsSet("match") && pattern.MatchString(p.Topic)
		}
	}
	to, err := of(c, w)
	if err != nil {
		return nil, nil, nil, err
	}
	return planOf(name, w, to), w, to, nil
}

func scoped(c *call) bool { return len(c.values("topic")) > 0 || c.IsSet("match") }

func brokerID(text string) (int32, error) {
	id, err := strconv.ParseInt(text, 10, 32)
	if err != nil || id < 0 {
		return 0, wrongUsage("%q is not the id of a broker", text)
	}
	return int32(id), nil
}

// aliveIDs reads ids of brokers that have to be registered, since they are to get replicas.
func aliveIDs(w *cluster.World, texts []string) ([]int32, error) {
	var list []int32
	for _, text := range texts {
		id, err := brokerID(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(w.Alive, func(b cluster.Broker) bool { return b.ID == id }) {
			return nil, &cluster.NotFoundError{Kind: "broker", Name: text}
		}
		list = append(list, id)
	}
	return list, nil
}

// drained plans for brokers to lose all that they have. A broker that neither is registered nor has replicas is not found.
func drained(c *call, w *cluster.World, texts []string) (plan.Assignment, error) {
	var leaving, to []int32
	for _, text := range texts {
		id, err := brokerID(text)
		if err != nil {
			return nil, err
		}
		has := slices.ContainsFunc(w.Partitions, func(p plan.Placed) bool { return slices.Contains(p.Replicas, id) })
		if _, err := aliveIDs(w, []string{text}); err != nil && !has {
			return nil, err
		}
		leaving = append(leaving, id)
	}
	if c.IsSet("to") {
		var err error
		if to, err = aliveIDs(w, strings.Split(c.String("to"), ",")); err != nil {
			return nil, err
		}
	}
	return w.Vacate(leaving, to)
}
