package native

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func brokerDrain() *cli.Command {
	return command{
		name: "drain", usage: "take all replicas off a broker, so that it can be stopped", arguments: "BROKER", least: 1, most: 1, alters: true, risky: true, lasts: true,
		help: `First others take the lead of what the broker leads, then its replicas move to other brokers, and nothing else moves. It also works for a broker that is dead. With --wait or --throttle it waits for the end, tells how far it is on standard error, and whether the broker is empty then. With --dry-run it shows the plan as 'barnabas plan drain' does. When a broker lacks room, --yes is needed.

Fields: of a dry run those of 'barnabas plan', otherwise dry_run, changes (kind, name, action, what, from, to, done, error).

    barnabas broker drain 3 --dry-run
    barnabas broker drain 3 --throttle 50MB/s --rollback back.json`,
		flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "only to brokers with these `IDS`, as 4,5"}, throttleFlag(),
			&cli.BoolFlag{Name: "wait", Usage: "wait until all is done"}, &cli.BoolFlag{Name: "additional", Usage: "start although others run"},
		}, scope(), planFiles()),
		run: drain,
	}.build()
}

func drain(c *call) (document, error) {
	id, err := brokerID(c.Args().First())
	if err != nil {
		return nil, err
	}
	d, w, to, err := c.plan("drain "+c.Args().First(), func(c *call, w *cluster.World) (plan.Assignment, error) { return drained(c, w, c.Args().Slice()) })
	if err != nil {
		return nil, err
	}
	if err := d.files(c); err != nil {
		return nil, err
	}
	if c.Bool("dry-run") {
		return d, nil
	}
	if _, err := c.rate(); err != nil {
		return nil, err
	}
	if len(d.Warnings) == 0 || c.Bool("yes") {
		if err := c.stepDown(w, id, to); err != nil {
			return nil, err
		}
	}
	said, err := c.carryOut(w, d, to)
	if err != nil || !c.Bool("wait") && !c.IsSet("throttle") {
		return said, err
	}
	left, err := c.cluster.ReplicasOn(c.ctx, id)
	switch {
	case err != nil:
		return said, err
	case len(left) > 0:
		c.note("Broker %d still has replicas of %s.", id, count(len(left), "partition"))
	default:
		c.note("Broker %d has no replicas any more: it can be stopped.", id)
	}
	return said, nil
}

// stepDown has others lead what a broker leads, before anything is copied. A partition that nobody else can lead yet is led by it until its replica has moved.
func (c *call) stepDown(w *cluster.World, id int32, to plan.Assignment) error {
	first := w.StepDown([]int32{id}, to)
	alive := slices.ContainsFunc(w.Alive, func(b cluster.Broker) bool { return b.ID == id })
	if len(first) == 0 || len(w.Moving) > 0 || !alive {
		return nil
	}
	if _, err := c.cluster.StartMoves(c.ctx, first, -1, false); err != nil {
		return err
	}
	const patience = 30 * time.Second
	deadline := time.Now().Add(patience)
	for {
		active, err := c.cluster.Moves(c.ctx)
		if err != nil {
			return err
		}
		if len(active) == 0 || time.Now().After(deadline) {
			return c.elect(first.Partitions())
		}
		select {
		case <-c.ctx.Done():
			return &errInterrupted{"nothing was moved"}
		case <-time.After(progressPause / 5):
		}
	}
}
