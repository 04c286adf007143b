package native

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/tools"
)

func reassignCommand() *cli.Command {
	return parent("reassign", "carry out, follow and end moves of replicas", reassignRun(), reassignList(), reassignWatch(), reassignVerify(), reassignCancel(), reassignThrottle())
}

// readPlan reads the targets of a file; "-" is standard input.
func readPlan(path string) (plan.Assignment, error) {
	if path == "-" {
		path = "/dev/stdin"
	}
	return tools.ReadReassignment(path)
}

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

func reassignRun() *cli.Command {
	return command{
		name: "run", usage: "carry out a plan", arguments: "FILE", least: 1, most: 1, alters: true, risky: true, lasts: true,
		help: `Carries out what a plan, or a file for kafka-reassign-partitions, says; FILE - is standard input. With --wait or --throttle it waits until all is done, telling how far it is on standard error, then elects the replicas that are to lead, and takes the throttle back; also when nothing could be started. The rate can be changed meanwhile with 'barnabas reassign throttle'. Interrupted, it leaves the move and its throttle to 'barnabas reassign watch'.

A plan for which a broker lacks room needs --yes. While others run it is refused, unless --additional is given.

Fields: dry_run, changes (kind, name, action, what, from, to, done, error).`,
		flags: []cli.Flag{throttleFlag(), &cli.BoolFlag{Name: "wait", Usage: "wait until all is done"}, &cli.BoolFlag{Name: "additional", Usage: "start although others run"},
			&cli.StringFlag{Name: "rollback", Usage: "write what takes it back into a new `FILE` first"}},
		run: func(c *call) (document, error) {
			targets, err := readPlan(c.Args().First())
			if err != nil {
				return nil, err
			}
			w, err := c.cluster.World(c.ctx)
			if err != nil {
				return nil, err
			}
			if _, err := c.cluster.Admissible(c.ctx, targets); err != nil {
				return nil, err
			}
			d := planOf("run", w, targets)
			if err := save(c.String("rollback"), d.Rollback); err != nil {
				return nil, err
			}
			return c.carryOut(w, d, targets)
		},
	}.build()
}

// carryOut starts a plan's moves and, where it was asked for, sees them to their end.
func (c *call) carryOut(w *cluster.World, d *planDocument, targets plan.Assignment) (document, error) {
	rate, err := c.rate()
	if err != nil {
		return nil, err
	}
	out := &changes{documentVersion, c.Bool("dry-run"), []change{}}
	if len(d.Warnings) > 0 && !out.DryRun && !c.Bool("yes") {
		return nil, fmt.Errorf("%s; --yes does it nevertheless", d.Warnings[0])
	}
	waits := c.Bool("wait") || rate >= 0
	action := "start moving"
	if waits {
		action = "move"
	}
	if !out.DryRun && len(targets) > 0 {
		unreachable, err := c.cluster.StartMoves(c.ctx, targets, rate, c.Bool("additional"))
		if len(unreachable) > 0 {
			c.note("Brokers %s are not registered and cannot be held back.", ids(unreachable))
		}
		var refused *cluster.RefusedError
		if err != nil && !errors.As(err, &refused) {
			return nil, err
		}
		started := maps.Clone(targets)
		if refused != nil {
			maps.DeleteFunc(started, func(p plan.Partition, _ []int32) bool { return refused.Partitions[p] != nil })
		}
		if waits && len(started) > 0 {
			if err := c.awaitMoves(w, started, rate >= 0); err != nil {
				return nil, err
			}
		}
		if refused != nil {
			for _, m := range d.Moves {
				_ = out.result(moved(m, action), refused.Partitions[plan.Partition{Topic: m.Topic, ID: m.Partition}])
			}
			return out, exitOf(refused)
		}
	}
	for _, m := range d.Moves {
		_ = out.result(moved(m, action), nil)
	}
	return out, nil
}

func moved(m plannedMove, action string) change {
	return change{Kind: "partition", Name: plan.Partition{Topic: m.Topic, ID: m.Partition}.String(), Action: action, What: "replicas", From: words("%s", ids(m.From)), To: words("%s", ids(m.To))}
}

// awaitMoves waits for the end of moves, takes their throttle back, whatever came of them, and has the replicas lead that are to.
func (c *call) awaitMoves(w *cluster.World, targets plan.Assignment, throttled bool) error {
	err := c.follow(targets.Partitions(), progressEvery, func(d *progressDocument) error { c.note("%s", d.line()); return nil })
	var interrupted *errInterrupted
	if errors.As(err, &interrupted) {
		return err
	}
	if throttled {
		err = errors.Join(err, c.cluster.Unthrottle(c.ctx, topicsOf(targets)))
	}
	if err != nil {
		return err
	}
	now, err := c.cluster.AwaitReplicas(c.ctx, targets)
	if err != nil {
		return err
	}
	for _, p := range targets.Partitions() {
		if !slices.Equal(now[p], targets[p]) {
			return fmt.Errorf("partition %v is on %s and not on %s: its reassignment was ended by somebody else", p, ids(now[p]), ids(targets[p]))
		}
	}
	return c.elect(led(w, targets))
}

// led are the partitions that get another preferred leader.
func led(w *cluster.World, targets plan.Assignment) []plan.Partition {
	var list []plan.Partition
	for _, p := range w.Partitions {
		if to := targets[p.Partition]; len(to) > 0 && to[0] != p.Replicas[0] {
			list = append(list, p.Partition)
		}
	}
	return list
}

// elect makes preferred replicas lead. Those that cannot yet are named on standard error; brokers that even leaders out by themselves do it later.
func (c *call) elect(partitions []plan.Partition) error {
	if len(partitions) == 0 {
		return nil
	}
	results, err := c.cluster.Elect(c.ctx, cluster.ElectPreferred, partitions)
	if err != nil {
		return err
	}
	for _, p := range partitions {
		if err := results[p]; err != nil && !errors.Is(err, kerr.ElectionNotNeeded) {
			c.note("The preferred replica of %v does not lead yet: %v", p, err)
		}
	}
	return nil
}

func topicsOf(targets plan.Assignment) []string {
	var names []string
	for _, p := range targets.Partitions() {
		names = append(names, p.Topic)
	}
	return slices.Compact(names)
}

const progressFields = `Fields: moves (topic, partition, replicas, adding_replicas, removing_replicas, bytes_left, rate_bytes_per_second, eta_seconds, stalled), bytes_left, rate_bytes_per_second, eta_seconds, stalled, throttles (broker, setting, bytes_per_second).`

func reassignList() *cli.Command {
	return command{
		name: "list", usage: "list what is being reassigned, with what is left and the throttles", watched: true,
		help: "Whoever started it. Rates need two looks: see 'barnabas reassign watch'.\n\n" + progressFields,
		run: func(c *call) (document, error) {
			left, total, pace, err := c.cluster.Follow(nil).Look(c.ctx)
			if err != nil {
				return nil, err
			}
			throttles, err := c.cluster.Throttles(c.ctx)
			return progressOf(left, total, pace, throttles), err
		},
	}.build()
}

func reassignWatch() *cli.Command {
	return command{
		name: "watch", usage: "follow all reassignments to their end, then take throttles back", lasts: true,
		help: `Tells again and again what is left, how fast it goes and how long it takes, until nothing is being reassigned. With -o json it is one document a line. Then throttles that are left over are taken back, unless --keep-throttles is given. A move is stalled when for 10 s nothing of it was copied.

` + progressFields,
		flags: []cli.Flag{&cli.BoolFlag{Name: "keep-throttles", Usage: "leave throttles as they are"}, &cli.DurationFlag{Name: "interval", Value: progressEvery, Usage: "how often"}},
		run: func(c *call) (document, error) {
			format := c.String("output")
			err := c.follow(nil, c.Duration("interval"), func(d *progressDocument) error {
				between(c.App.Writer, format)
				return c.say(d)
			})
			var interrupted *errInterrupted
			if errors.As(err, &interrupted) {
				return nil, nil
			}
			if err == nil && !c.Bool("keep-throttles") {
				err = c.unthrottleAll()
			}
			if err != nil {
				return nil, err
			}
			return progressOf(nil, 0, &cluster.Pace{}, nil), nil
		},
	}.build()
}

// unthrottleAll takes back what throttles there are, but for what still moves.
func (c *call) unthrottleAll() error {
	topics, err := c.cluster.ThrottledTopics(c.ctx)
	if err != nil {
		return err
	}
	return c.cluster.Unthrottle(c.ctx, topics)
}

type verifyDocument struct {
	Version    int          `json:"version"`
	Complete   bool         `json:"complete"`
	Partitions []verifyLine `json:"partitions"`
}

type verifyLine struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Wanted    []int32 `json:"wanted_replicas"`
	Replicas  []int32 `json:"replicas"`
	State     string  `json:"state"` // complete, moving, different or missing
}

func (d *verifyDocument) show(w io.Writer) {
	rows := [][]string{{"PARTITION", "WANTED", "REPLICAS", "STATE"}}
	for _, p := range d.Partitions {
		rows = append(rows, []string{plan.Partition{Topic: p.Topic, ID: p.Partition}.String(), ids(p.Wanted), ids(p.Replicas), p.State})
	}
	columns(w, rows)
}

func verified(targets, now plan.Assignment, active cluster.Moves) *verifyDocument {
	d := &verifyDocument{documentVersion, true, []verifyLine{}}
	for _, p := range targets.Partitions() {
		replicas, there := now[p]
		_, moving := active[p]
		state := "different"
		switch {
		case !there:
			state = "missing"
		case moving:
			state = "moving"
		case slices.Equal(replicas, targets[p]):
			state = "complete"
		}
		d.Complete = d.Complete && state == "complete"
		d.Partitions = append(d.Partitions, verifyLine{p.Topic, p.ID, targets[p], listed(replicas), state})
	}
	return d
}

func reassignVerify() *cli.Command {
	return command{
		name: "verify", usage: "compare a plan with what is", arguments: "FILE", least: 1, most: 1,
		help: `Tells of each partition whether it is where the plan wants it: complete, moving, different (and nothing moves it) or missing. Ends with 1 unless all is complete. It changes nothing; throttles that are left over are taken back by 'barnabas reassign throttle off'.

Fields: complete, partitions (topic, partition, wanted_replicas, replicas, state).`,
		run: func(c *call) (document, error) {
			targets, err := readPlan(c.Args().First())
			if err != nil {
				return nil, err
			}
			active, err := c.cluster.Moves(c.ctx)
			if err != nil {
				return nil, err
			}
			now, _, err := c.cluster.Replicas(c.ctx, topicsOf(targets))
			if err != nil {
				return nil, err
			}
			d := verified(targets, now, active)
			if !d.Complete {
				return d, Failed
			}
			return d, nil
		},
	}.build()
}

func reassignCancel() *cli.Command {
	return command{
		name: "cancel", usage: "end reassignments where they are", arguments: "[FILE]", most: 1, alters: true,
		help: `Ends the reassignments of the partitions in FILE, or with --all every one, and takes their throttles back. What a new replica has copied is thrown away.

Fields: dry_run, changes (kind, name, action, what, from, to, done, error).`,
		flags: []cli.Flag{&cli.BoolFlag{Name: "all", Usage: "all that there are"}},
		run: func(c *call) (document, error) {
			if (c.NArg() == 1) == c.Bool("all") {
				return nil, wrongUsage("either FILE or --all has to be given")
			}
			active, err := c.cluster.Moves(c.ctx)
			if err != nil {
				return nil, err
			}
			list := plan.Assignment{}
			if c.NArg() == 1 {
				targets, err := readPlan(c.Args().First())
				if err != nil {
					return nil, err
				}
				for p := range targets {
					if _, moving := active[p]; moving {
						list[p] = nil
					}
				}
			} else {
				for p := range active {
					list[p] = nil
				}
			}
			d := &changes{documentVersion, c.Bool("dry-run"), []change{}}
			if !d.DryRun && len(list) > 0 {
				err = c.cluster.CancelMoves(c.ctx, list.Partitions())
			}
			var refused *cluster.RefusedError
			if err != nil && !errors.As(err, &refused) {
				return nil, err
			}
			for _, p := range list.Partitions() {
				one := change{Kind: "partition", Name: p.String(), Action: "cancel", What: "reassignment", From: words("%s", ids(active[p].Replicas)), To: words("%s", ids(plan.Without(active[p].Replicas, active[p].Adding)))}
				if refused != nil {
					_ = d.result(one, refused.Partitions[p])
					continue
				}
				_ = d.result(one, nil)
			}
			if !d.DryRun {
				if err := c.unthrottleAll(); err != nil {
					return d, err
				}
			}
			if refused != nil {
				return d, exitOf(refused)
			}
			return d, nil
		},
	}.build()
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
	for _, id := range sortedIDs(before) {
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

func sortedIDs(m map[int32][]cluster.Setting) []int32 {
	var list []int32
	for id := range m {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}
