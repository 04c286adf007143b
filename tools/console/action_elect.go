package console

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func electAction() action {
	return action{path: "/do/elect", title: "Elect preferred leaders",
		fields: func(_ context.Context, _ *Console, in url.Values) ([]field, error) {
			return []field{{Name: "topic", Label: "Topic", Value: in.Get("topic"), Kind: "text", Help: "empty: all topics"}}, nil
		},
		preview: previewElection, do: electLeaders,
		back: func(in url.Values) string {
			if in.Get("topic") != "" {
				return link("/topic", "name", in.Get("topic"))
			}
			return "/"
		},
	}
}

// electable are the partitions that another than the preferred replica leads, and of these the ones whose preferred replica is in sync.
func (c *Console) electable(ctx context.Context, topic string) (all, ready []plan.Partition, rows [][]string, err error) {
	s, err := c.snapshot(ctx, time.Second)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, t := range s.Topics {
		if topic != "" && t.Name != topic {
			continue
		}
		for _, p := range t.Partitions {
			if p.Leader == p.Preferred() {
				continue
			}
			key := plan.Partition{Topic: t.Name, ID: p.ID}
			all = append(all, key)
			will := "stays: the preferred replica is not in sync"
			if slices.Contains(p.ISR, p.Preferred()) {
				ready, will = append(ready, key), "broker "+strconv.Itoa(int(p.Preferred()))
			}
			rows = append(rows, []string{key.String(), leaderName(p), will})
		}
	}
	return all, ready, rows, nil
}

func leaderName(p cluster.Partition) string {
	if p.Unavailable() {
		return "none"
	}
	return "broker " + strconv.Itoa(int(p.Leader))
}

func previewElection(ctx context.Context, c *Console, in url.Values) (*preview, error) {
	topic := in.Get("topic")
	all, ready, rows, err := c.electable(ctx, topic)
	if err != nil {
		return nil, err
	}
	if len(ready) == 0 {
		if len(all) > 0 {
			return nil, errors.New("no preferred replica that does not lead is in sync")
		}
		return nil, errors.New("the preferred replicas lead everywhere already")
	}
	p := &preview{Sentence: "The preferred replicas of " + plural(len(ready), "partition") + " become leaders. Clients follow within moments; no data is copied.", Heading: []string{"Partition", "Leader now", "Then"}, Rows: rows}
	p.Commands = []string{command("kafka-leader-election.sh", "--bootstrap-server", c.Bootstrap, "--election-type", "preferred", "--all-topic-partitions")}
	if topic != "" {
		p.Commands = nil
		for _, one := range ready[:min(len(ready), 5)] {
			p.Commands = append(p.Commands, command("kafka-leader-election.sh", "--bootstrap-server", c.Bootstrap, "--election-type", "preferred", "--topic", topic, "--partition", strconv.Itoa(int(one.ID))))
		}
	}
	return p, nil
}

func electLeaders(ctx context.Context, c *Console, in url.Values) (string, error) {
	_, ready, _, err := c.electable(ctx, in.Get("topic"))
	if err != nil {
		return "", err
	}
	results, err := c.Cluster.Elect(ctx, cluster.ElectPreferred, ready)
	if err != nil {
		return "", err
	}
	failed := 0
	var first error
	for _, err := range results {
		if err != nil && !errors.Is(err, kerr.ElectionNotNeeded) {
			failed, first = failed+1, err
		}
	}
	if failed > 0 {
		return plural(failed, "partition") + " could not be elected:", first
	}
	return "elected the preferred leaders of " + plural(len(ready), "partition"), nil
}
