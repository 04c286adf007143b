package native

import (
	"barnabas/admin/cluster"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"
)

// Holding the replication of what moves back, and letting it go.

func throttleFlag() cli.Flag {
	return &cli.StringFlag{Name: "throttle", Usage: "hold replication of what moves back to `RATE`, such as 80MB/s, and wait for the end to take that back"}
}

// rate is what --throttle says; -1 without it.
func (c *call) rate() (int64, error) {
	if !c.IsSet("throttle") {
		return -1, nil
	}
	return readRate(c.String("throttle"))
}

// unthrottleAll takes back what throttles there are, but for what still moves.
func (c *call) unthrottleAll() error {
	topics, err := c.cluster.ThrottledTopics(c.ctx)
	if err != nil {
		return err
	}
	return c.cluster.Unthrottle(c.ctx, topics)
}

func reassignThrottle() *cli.Command {
	return command{
		name: "throttle", usage: "change the throttle of what is being reassigned, or take left over ones back", arguments: "RATE|off", least: 1, most: 1, alters: true,
		help: `Holds replication of all that is being reassigned back to RATE, such as 80MB/s, whoever started it; 'off' takes every throttle of topics and brokers back. Without anything under way a rate is refused, since nobody would take it back.

Fields: dry_run, changes (kind, name, action, what, from, to, done, error).`,
		run: func(c *call) (document, error) {
			word := c.Args().First()
			before, err := c.cluster.Throttles(c.ctx)
			if err != nil {
				return nil, err
			}
			active, err := c.cluster.Moves(c.ctx)
			if err != nil {
				return nil, err
			}
			d := &changes{documentVersion, c.Bool("dry-run"), []change{}}
			if word == "off" {
				return d, c.throttleOff(d, before, active)
			}
			rate, err := readRate(word)
			if err != nil {
				return nil, err
			}
			if len(active) == 0 {
				return nil, errors.New("nothing is being reassigned that could be held back")
			}
			return d, c.throttleTo(d, before, active, rate)
		},
	}.build()
}

// throttleOff takes all throttles back, those of what moves too.
func (c *call) throttleOff(d *changes, before map[int32][]cluster.Setting, active cluster.Moves) error {
	topics, err := c.cluster.ThrottledTopics(c.ctx)
	if err != nil {
		return err
	}
	if !d.DryRun {
		brokers := cluster.ThrottlingOf(active, nil, nil).Brokers
		for id := range before {
			brokers = append(brokers, id)
		}
		slices.Sort(brokers)
		err = c.cluster.EndThrottles(c.ctx, topics, slices.Compact(brokers))
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		for _, s := range before[id] {
			_ = d.result(change{Kind: "broker", Name: strconv.Itoa(int(id)), Action: "remove", What: s.Name, From: &s.Value}, err)
		}
	}
	for _, topic := range topics {
		_ = d.result(change{Kind: "topic", Name: topic, Action: "remove", What: "throttled replicas"}, err)
	}
	if err != nil {
		return exitOf(err)
	}
	return nil
}

func (c *call) throttleTo(d *changes, before map[int32][]cluster.Setting, active cluster.Moves, rate int64) error {
	var err error
	var unreachable []int32
	if !d.DryRun {
		unreachable, err = c.cluster.Throttle(c.ctx, active, rate)
	}
	for _, id := range cluster.ThrottlingOf(active, nil, nil).Brokers {
		one := change{Kind: "broker", Name: strconv.Itoa(int(id)), Action: "set", What: "throttle", To: words("%s/s", cluster.ByteCount(rate))}
		for _, s := range before[id] {
			if n, bad := strconv.ParseInt(s.Value, 10, 64); bad == nil && s.Name == cluster.FollowerThrottleRate {
				one.From = words("%s/s", cluster.ByteCount(n))
			}
		}
		failure := err
		if slices.Contains(unreachable, id) {
			failure = errors.New("it is not registered")
		}
		_ = d.result(one, failure)
	}
	if err != nil {
		return exitOf(err)
	}
	return nil
}
