package native

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
)

type topDocument struct {
	Version int       `json:"version"`
	By      string    `json:"by"`
	Over    float64   `json:"over_seconds"` // between the two readings
	Rows    []topLine `json:"rows"`
}

// topLine has what its kind of row is about; what is not known is null.
type topLine struct {
	Broker   *int64   `json:"broker"`
	Topic    *string  `json:"topic"`
	Group    *string  `json:"group"`
	Messages *float64 `json:"messages_per_second"`
	BytesIn  *int64   `json:"bytes_in_per_second"`
	BytesOut *int64   `json:"bytes_out_per_second"` // an estimate
	Size     *int64   `json:"size_bytes"`
	Lag      *int64   `json:"lag"`
	LagRate  *float64 `json:"lag_per_second"`
	Clears   *int64   `json:"clear_in_seconds"`
}

var topKinds = []string{"topic", "broker", "group"}

func (d *topDocument) show(w io.Writer) {
	head := map[string][]string{
		"topic":  {"TOPIC", "MESSAGES/S", "IN", "OUT (ABOUT)", "SIZE"},
		"broker": {"BROKER", "MESSAGES/S", "IN", "OUT (ABOUT)", "SIZE"},
		"group":  {"GROUP", "READS/S", "OUT (ABOUT)", "LAG", "LAG/S", "CLEAR IN"},
	}[d.By]
	rows := [][]string{head}
	for _, l := range d.Rows {
		cells := map[string]string{"TOPIC": text(l.Topic), "BROKER": maybe(l.Broker), "GROUP": text(l.Group), "MESSAGES/S": decimal(l.Messages, "%.1f"), "READS/S": decimal(l.Messages, "%.1f"), "IN": perSecond(l.BytesIn),
			"OUT (ABOUT)": perSecond(l.BytesOut), "SIZE": size(l.Size), "LAG": maybe(l.Lag), "LAG/S": decimal(l.LagRate, "%+.1f"), "CLEAR IN": seconds(l.Clears)}
		var row []string
		for _, name := range head {
			row = append(row, cells[name])
		}
		rows = append(rows, row)
	}
	columns(w, rows)
}

func decimal(n *float64, format string) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprintf(format, *n)
}

func rateOf(r cluster.Rate) *float64 {
	if !r.Known {
		return nil
	}
	return &r.PerSecond
}

func bytesOf(r cluster.Rate) *int64 {
	if !r.Known {
		return nil
	}
	return known(int64(r.PerSecond))
}

func topOf(by string, before, after *cluster.Reading) *topDocument {
	d := &topDocument{Version: documentVersion, By: by, Over: after.EndsAt.Sub(before.EndsAt).Round(time.Millisecond).Seconds(), Rows: []topLine{}}
	brokers, topics, groups := cluster.Rates(before, after)
	for _, t := range map[string][]cluster.Traffic{"broker": brokers, "topic": topics, "group": groups}[by] {
		line := topLine{Messages: rateOf(t.Messages), BytesIn: bytesOf(t.BytesIn), BytesOut: bytesOf(t.BytesOut), Size: known(t.Size), Lag: known(t.Lag), LagRate: rateOf(t.LagRate)}
		switch by {
		case "broker":
			line.Broker = known(int64(t.Broker))
		case "topic":
			line.Topic = words("%s", t.Name)
		case "group":
			line.Group = words("%s", t.Name)
			if in, clears := t.Clears(); clears {
				line.Clears = known(int64(in.Round(time.Second) / time.Second))
			}
		}
		d.Rows = append(d.Rows, line)
	}
	return d
}

// busiest orders rows: brokers and topics by what comes in, groups by how far they are behind.
func (d *topDocument) busiest() {
	slices.SortStableFunc(d.Rows, func(a, b topLine) int {
		if d.By == "group" {
			return cmp.Compare(orNone(b.Lag), orNone(a.Lag))
		}
		return cmp.Compare(orNone(b.BytesIn), orNone(a.BytesIn))
	})
}

func orNone(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

func topCommand() *cli.Command {
	var last *cluster.Reading // of the run before, with --watch
	c := command{
		name: "top", usage: "show what goes through topics, brokers or groups, the most first", watched: true,
		help: `Reads offsets, sizes of logs and commits twice, some time apart; with --watch each time is compared with the one before. Messages are what offsets tell: those that are compacted away, and markers of transactions, count too. Bytes that come in are what logs grow by, of a broker with its followers' replicas. Bytes that go out are about what groups have read, by the size that messages have on disk; who commits nothing is not seen. A group's lag clears when it goes on as now.

Topics and brokers are sorted by bytes that come in, groups by their lag.

Fields: by, over_seconds, rows (broker, topic, group, messages_per_second, bytes_in_per_second, bytes_out_per_second, size_bytes, lag, lag_per_second, clear_in_seconds). A row has what it is about; the rest, and what is not known, is null.

    barnabas top --watch
    barnabas top --by group --over 10s -o json`,
		flags: []cli.Flag{
			byFlag(topKinds, "topic"),
			&cli.DurationFlag{Name: "over", Value: 2 * time.Second, Usage: "how far apart the first two readings are"},
			&cli.StringFlag{Name: "sort", Value: "rate", Usage: "rate, or name"},
			topFlag(),
		},
		run: func(c *call) (document, error) {
			by, err := c.kind(topKinds)
			if err != nil {
				return nil, err
			}
			order := c.String("sort")
			switch {
			case order != "rate" && order != "name":
				return nil, wrongUsage("--sort %s is neither rate nor name", order)
			case c.Duration("over") <= 0:
				return nil, wrongUsage("--over has to be longer than nothing")
			}
			before := last
			if before == nil {
				if before, err = c.cluster.Reading(c.ctx, time.Now); err != nil {
					return nil, err
				}
				select {
				case <-time.After(c.Duration("over")):
				case <-c.ctx.Done():
					return nil, c.ctx.Err()
				}
			}
			after, err := c.cluster.Reading(c.ctx, time.Now)
			if err != nil {
				return nil, err
			}
			last = after
			d := topOf(by, before, after)
			if order == "rate" {
				d.busiest()
			}
			d.Rows = topRows(c, d.Rows)
			return d, nil
		},
	}.build()
	c.Category = category
	return c
}
