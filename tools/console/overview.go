package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"barnabas/admin/cluster"
	"barnabas/admin/health"
)

func overviewPage() page {
	return page{path: "/", title: "Overview", file: "overview.html", under: "/", entry: true, pace: time.Second, live: []string{"verdict", "brokers", "figures", "worst", "happened"}, data: overview}
}

// overviewData is one look at the whole cluster.
type overviewData struct {
	Healthy    bool
	Sentence   string
	Findings   []health.Finding
	NotJudged  []string
	Controller int32
	Counts     health.Counts
	AtMinISR   int
	Brokers    []brokerRow
	Worst      []groupRow
	GroupFault string
	Events     []event
}

const (
	worstShown  = 5
	eventsShown = 12
)

func overview(ctx context.Context, c *Console, _ question) (any, error) {
	s, err := c.snapshot(ctx, time.Second)
	if err != nil {
		return nil, err
	}
	findings, counts := health.Examine(s)
	events := c.keeper.recent(eventsShown)
	d := &overviewData{Healthy: health.Healthy(findings), Findings: findings, NotJudged: s.Unread, Controller: s.Controller, Counts: counts, Brokers: brokerRows(s), Events: events}
	d.Sentence = sentence(s, findings, counts, events)
	for _, t := range s.Topics {
		for _, p := range t.Partitions {
			if t.MinISR > 1 && p.AtMinISR(t.MinISR) {
				d.AtMinISR++
			}
		}
	}
	groups, err := c.allGroups(ctx, 2*time.Second)
	if err != nil {
		d.GroupFault = err.Error()
		return d, nil
	}
	d.Worst = groupRows(groups, &c.keeper)
	d.Worst = slices.DeleteFunc(d.Worst, func(g groupRow) bool { return !g.Known || g.Lag == 0 })
	d.Worst = d.Worst[:min(worstShown, len(d.Worst))]
	return d, nil
}

// sentence is what a tired operator should read first.
func sentence(s *cluster.Snapshot, findings []health.Finding, counts health.Counts, events []event) string {
	var critical []string
	for _, f := range findings {
		if f.Severity == health.Critical {
			critical = append(critical, f.Summary)
		}
	}
	if len(critical) == 0 {
		if len(findings) > 0 {
			return "Working: " + findings[0].Summary + "."
		}
		return fmt.Sprintf("Healthy: %s, and every replica in sync.", strings.Join([]string{plural(len(s.Views), "broker") + " answering", plural(counts.Topics, "topic"), plural(counts.Partitions, "partition")}, ", "))
	}
	text := "Degraded: " + critical[0]
	if n := len(critical) - 1; n > 0 {
		text += fmt.Sprintf(" (and %s)", plural(n, "more finding"))
	}
	at := slices.IndexFunc(events, func(e event) bool { return e.Kind == "broker" && e.Bad })
	if at >= 0 {
		text += fmt.Sprintf(". At %s: %s", events[at].At.Format(time.TimeOnly), events[at].Text)
	}
	return text + "."
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(int64(n)) + " " + one + "s"
}
