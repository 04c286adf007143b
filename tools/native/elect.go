package native

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func electCommand() *cli.Command {
	c := command{
		name: "elect", usage: "have preferred replicas lead, or, where none in sync is alive, another", arguments: "[TOPIC[-PARTITION]...]", most: -1, alters: true, risky: true,
		help: `Elects leaders of the partitions or topics that are named, or with --all of every one. The first replica is preferred, and leads if it is in sync. With --unclean a replica that is not in sync leads where no other is alive, and what it lacks is lost; that is asked about, or needs --yes. Partitions whose leader stays are not shown.

` + changeFields + `

    barnabas elect --all
    barnabas elect orders-3 --unclean --dry-run`,
		flags: []cli.Flag{&cli.BoolFlag{Name: "all", Usage: "all partitions"}, &cli.BoolFlag{Name: "unclean", Usage: "elect replicas that lack records, where no other is alive"}},
		run:   elect,
	}.build()
	c.Category = category
	return c
}

func elect(c *call) (document, error) {
	kind, dry := cluster.ElectPreferred, c.Bool("dry-run")
	if c.Bool("unclean") {
		kind = cluster.ElectUnclean
	}
	if (c.NArg() > 0) == c.Bool("all") {
		return nil, wrongUsage("either topics or partitions, or --all, have to be given")
	}
	if kind == cluster.ElectUnclean {
		if err := c.sure("losing records by an unclean election", "unclean"); err != nil {
			return nil, err
		}
	}
	topics, err := c.cluster.AllTopics(c.ctx)
	if err != nil {
		return nil, err
	}
	due, err := electable(topics, c.Args().Slice(), kind)
	if err != nil {
		return nil, err
	}
	d := &changes{documentVersion, dry, []change{}}
	results := map[plan.Partition]error{}
	if !dry && len(due) > 0 {
		var list []plan.Partition
		for _, e := range due {
			list = append(list, e.partition)
		}
		if results, err = c.cluster.Elect(c.ctx, kind, list); err != nil {
			return nil, err
		}
	}
	var failures []error
	for _, e := range due {
		err := results[e.partition]
		if errors.Is(err, kerr.ElectionNotNeeded) {
			err = nil // somebody was quicker
		}
		one := change{Kind: "partition", Name: e.partition.String(), Action: "elect", What: "leader", From: e.from, To: e.to}
		failures = append(failures, d.result(one, err))
	}
	return d, exitOfFirst(failures)
}

// election is one that changes something: from and to are null where there is no leader, and where the controller chooses.
type election struct {
	partition plan.Partition
	from, to  *string
}

// electable are the partitions, of those that are named or of all, whose leader would change.
func electable(topics []cluster.Topic, named []string, kind cluster.ElectionType) ([]election, error) {
	found := map[string]bool{}
	var due []election
	for _, t := range topics {
		for _, p := range t.Partitions {
			name := plan.Partition{Topic: t.Name, ID: p.ID}
			if len(named) > 0 && !slices.Contains(named, t.Name) && !slices.Contains(named, name.String()) {
				continue
			}
			found[t.Name], found[name.String()] = true, true
			e := election{partition: name}
			if !p.Unavailable() {
				e.from = words("%d", p.Leader)
			}
			switch {
			case kind == cluster.ElectUnclean && p.Unavailable():
			case kind == cluster.ElectPreferred && p.Leader != p.Preferred():
				e.to = words("%d", p.Preferred())
			default:
				continue
			}
			due = append(due, e)
		}
	}
	for _, name := range named {
		if found[name] {
			continue
		}
		kind := "topic"
		if at := strings.LastIndexByte(name, '-'); at > 0 {
			if _, err := strconv.ParseInt(name[at+1:], 10, 32); err == nil {
				kind = "topic or partition"
			}
		}
		return nil, &cluster.NotFoundError{Kind: kind, Name: fmt.Sprint(name)}
	}
	return due, nil
}
