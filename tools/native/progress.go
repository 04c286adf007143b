package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// progressDocument is how far reassignments are.
type progressDocument struct {
	Version   int            `json:"version"`
	Moves     []progressLine `json:"moves"`
	Left      *int64         `json:"bytes_left"`
	Rate      *int64         `json:"rate_bytes_per_second"` // null: not to be said yet
	ETA       *int64         `json:"eta_seconds"`
	Stalled   bool           `json:"stalled"` // of one of them, for a while nothing was copied
	Throttles []throttleLine `json:"throttles"`
}

type progressLine struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Replicas  []int32 `json:"replicas"`
	Adding    []int32 `json:"adding_replicas"`
	Removing  []int32 `json:"removing_replicas"`
	Left      *int64  `json:"bytes_left"`
	Rate      *int64  `json:"rate_bytes_per_second"`
	ETA       *int64  `json:"eta_seconds"`
	Stalled   bool    `json:"stalled"`
}

type throttleLine struct {
	Broker  int32  `json:"broker"`
	Setting string `json:"setting"`
	Rate    string `json:"bytes_per_second"`
}

func progressOf(left []cluster.Left, total int64, pace *cluster.Pace, throttles map[int32][]cluster.Setting) *progressDocument {
	d := &progressDocument{Version: documentVersion, Moves: []progressLine{}, Left: known(total), Throttles: []throttleLine{}}
	d.Rate, d.ETA = speed(pace)
	for _, l := range left {
		line := progressLine{Topic: l.Partition.Topic, Partition: l.Partition.ID, Replicas: listed(l.Replicas), Adding: listed(l.Adding), Removing: listed(l.Removing), Left: known(l.Bytes), Stalled: l.Pace.Stalled()}
		line.Rate, line.ETA = speed(l.Pace)
		d.Stalled = d.Stalled || line.Stalled
		d.Moves = append(d.Moves, line)
	}
	for _, id := range slices.Sorted(maps.Keys(throttles)) {
		for _, s := range throttles[id] {
			d.Throttles = append(d.Throttles, throttleLine{id, s.Name, s.Value})
		}
	}
	return d
}

func speed(pace *cluster.Pace) (rate, eta *int64) {
	left, can := pace.Remaining()
	if !can {
		return nil, nil
	}
	return known(int64(pace.Rate())), known(int64(left / time.Second))
}

func (d *progressDocument) show(w io.Writer) {
	if len(d.Moves) == 0 {
		fmt.Fprintln(w, "Nothing is being reassigned.")
	} else {
		fmt.Fprintln(w, d.line())
		rows := [][]string{{"PARTITION", "REPLICAS", "ADDING", "REMOVING", "LEFT", "RATE", "TO GO", "STATE"}}
		for _, m := range d.Moves {
			state := "moving"
			if m.Stalled {
				state = "stalled"
			}
			rows = append(rows, []string{plan.Partition{Topic: m.Topic, ID: m.Partition}.String(), ids(m.Replicas), ids(m.Adding), ids(m.Removing), size(m.Left), perSecond(m.Rate), seconds(m.ETA), state})
		}
		columns(w, rows)
	}
	for _, t := range d.Throttles {
		if rate, err := strconv.ParseInt(t.Rate, 10, 64); err == nil {
			fmt.Fprintf(w, "Broker %d: %s %s/s\n", t.Broker, t.Setting, cluster.ByteCount(rate))
		}
	}
}

// line says in one line how far all is.
func (d *progressDocument) line() string {
	parts := []string{count(len(d.Moves), "partition") + " moving"}
	if d.Left != nil {
		parts = append(parts, size(d.Left)+" left")
	}
	if d.ETA != nil {
		parts = append(parts, perSecond(d.Rate), "about "+seconds(d.ETA)+" to go")
	}
	if d.Stalled {
		parts = append(parts, "stalled")
	}
	return strings.Join(parts, ", ")
}

func perSecond(rate *int64) string {
	if rate == nil {
		return "-"
	}
	return cluster.ByteCount(*rate) + "/s"
}

func seconds(n *int64) string {
	if n == nil {
		return "-"
	}
	return (time.Duration(*n) * time.Second).String()
}

const (
	progressPause = 500 * time.Millisecond // between two looks
	progressEvery = 2 * time.Second        // between two lines
)

// errInterrupted is an end that the user wanted before the cluster came to one.
type errInterrupted struct{ what string }

func (e *errInterrupted) Error() string { return "interrupted: " + e.what }

// follow looks at reassignments of some partitions, or of all, until there are none, and tells of it every now and then.
func (c *call) follow(only []plan.Partition, pace time.Duration, tell func(*progressDocument) error) error {
	progress := c.cluster.Follow(only)
	tick := time.NewTicker(progressPause)
	defer tick.Stop()
	interrupted := &errInterrupted{"the reassignment goes on, and so does its throttle; 'barnabas reassign watch' sees both to their end"}
	var told time.Time
	for {
		left, total, overall, err := progress.Look(c.ctx)
		switch {
		case errors.Is(c.ctx.Err(), context.Canceled):
			return interrupted
		case err != nil:
			return err
		case len(left) == 0:
			return nil
		}
		if now := time.Now(); now.Sub(told) >= pace {
			told = now
			if err := tell(progressOf(left, total, overall, nil)); err != nil {
				return err
			}
		}
		select {
		case <-c.ctx.Done():
			return interrupted
		case <-tick.C:
		}
	}
}

// readRate reads a number of bytes a second: 1000000, 80MB/s, 50MiB.
func readRate(text string) (int64, error) {
	number := strings.TrimSuffix(text, "/s")
	number = strings.TrimSuffix(number, "B")
	unit := int64(1)
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}} {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	const most = 1 << 60
	rate := n * float64(unit)
	possible := rate >= 1 && rate <= most // no replica would ever come with 0
	if err != nil || !possible {
		return 0, wrongUsage("%q is not a rate such as 80MB/s or 50MiB", text)
	}
	return int64(rate), nil
}
