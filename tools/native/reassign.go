package native

import (
	"errors"
	"fmt"
	"maps"
	"slices"

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
