package native

import (
	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"io"
	"slices"

	"github.com/urfave/cli/v2"
)

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
