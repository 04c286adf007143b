package native

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// planDocument is a plan with what it does. It is a file for kafka-reassign-partitions too, which passes over what it does not know.
type planDocument struct {
	Version    int                  `json:"version"`
	Goal       string               `json:"goal"`
	Partitions []plan.FilePartition `json:"partitions"`
	Moves      []plannedMove        `json:"moves"`
	Brokers    []plannedShare       `json:"brokers"`
	Moved      int                  `json:"replicas_moved"`
	MovedBytes int64                `json:"bytes_moved"`
	Leaders    int                  `json:"preferred_leaders_changed"`
	Crowded    [2]int               `json:"partitions_crowded_in_racks"` // before and after
	ISR        *int64               `json:"smallest_isr"`
	ISRAt      *string              `json:"smallest_isr_partition"`
	Warnings   []string             `json:"warnings"`
	Notes      []string             `json:"notes"`
	Rollback   plan.File            `json:"rollback"`
}

type plannedMove struct {
	Topic      string  `json:"topic"`
	Partition  int32   `json:"partition"`
	From       []int32 `json:"from"`
	To         []int32 `json:"to"`
	Bytes      int64   `json:"bytes"`
	LeaderFrom int32   `json:"preferred_leader_from"`
	LeaderTo   int32   `json:"preferred_leader_to"`
}

type plannedShare struct {
	Broker   int32    `json:"broker"`
	Rack     *string  `json:"rack"`
	Replicas [2]int   `json:"replicas"` // before and after, as in what follows
	Leaders  [2]int   `json:"preferred_leaders"`
	Bytes    [2]int64 `json:"bytes"`
	In       int64    `json:"bytes_in"`
	Out      int64    `json:"bytes_out"`
	Free     *int64   `json:"free_bytes"`
	FreeThen *int64   `json:"free_bytes_after"`
}

// planOf works out what an assignment does to a cluster.
func planOf(goal string, w *cluster.World, to plan.Assignment) *planDocument {
	preview := plan.PreviewOf(w.World, to, w.InSync)
	d := &planDocument{Version: documentVersion, Goal: goal, Partitions: to.File().Partitions, Moves: []plannedMove{}, Brokers: []plannedShare{}, Moved: preview.Moved, MovedBytes: preview.MovedBytes,
		Leaders: preview.LeadersChanged, Crowded: [2]int{preview.Crowded, preview.CrowdedAfter}, Warnings: []string{}, Notes: listed(w.Notes)}
	back := plan.Assignment{}
	for _, c := range preview.Changes {
		back[c.Partition] = c.From
		d.Moves = append(d.Moves, plannedMove{c.Topic, c.ID, c.From, c.To, c.Bytes, c.From[0], c.To[0]})
	}
	d.Rollback = back.File()
	if d.ISR = known(int64(preview.SmallestISR)); d.ISR != nil {
		d.ISRAt = words("%v", preview.SmallestISRAt)
	}
	for _, s := range preview.Shares {
		line := plannedShare{Broker: s.ID, Replicas: [2]int{s.Replicas, s.ReplicasAfter}, Leaders: [2]int{s.Leaders, s.LeadersAfter}, Bytes: [2]int64{s.Bytes, s.BytesAfter}, In: s.In, Out: s.Out}
		if s.Rack != "" {
			line.Rack = &s.Rack
		}
		if free, told := w.Free[s.ID]; told {
			then := free - s.In + s.Out
			line.Free, line.FreeThen = &free, &then
			if s.In > free {
				d.Warnings = append(d.Warnings, fmt.Sprintf("broker %d gets %s and has room for %s", s.ID, cluster.ByteCount(s.In), cluster.ByteCount(free)))
			}
		}
		d.Brokers = append(d.Brokers, line)
	}
	if preview.SmallestISR == 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("partition %v has no replica in sync: its new ones have nobody to copy from", preview.SmallestISRAt))
	}
	return d
}

func (d *planDocument) show(w io.Writer) {
	if len(d.Moves) == 0 {
		fmt.Fprintf(w, "%s: nothing has to change.\n", d.Goal)
		d.showWords(w)
		return
	}
	fmt.Fprintf(w, "%s: %s, %s and %s copied, %s.\n\n", d.Goal, count(len(d.Moves), "partition"), count(d.Moved, "replica"), cluster.ByteCount(d.MovedBytes), count(d.Leaders, "new preferred leader"))
	rows := [][]string{{"PARTITION", "REPLICAS", "TO", "COPIES", "LEADER"}}
	for _, m := range d.Moves {
		leader := "-"
		if m.LeaderFrom != m.LeaderTo {
			leader = fmt.Sprintf("%d to %d", m.LeaderFrom, m.LeaderTo)
		}
		rows = append(rows, []string{plan.Partition{Topic: m.Topic, ID: m.Partition}.String(), ids(m.From), ids(m.To), cluster.ByteCount(m.Bytes), leader})
	}
	columns(w, rows)
	fmt.Fprintln(w)
	rows = [][]string{{"BROKER", "RACK", "REPLICAS", "AFTER", "LEADERS", "AFTER", "IN", "OUT", "FREE", "AFTER"}}
	for _, b := range d.Brokers {
		free := size(b.FreeThen)
		if b.FreeThen != nil && *b.FreeThen < 0 {
			free = "-" + cluster.ByteCount(-*b.FreeThen)
		}
		rows = append(rows, []string{strconv.Itoa(int(b.Broker)), text(b.Rack), strconv.Itoa(b.Replicas[0]), strconv.Itoa(b.Replicas[1]), strconv.Itoa(b.Leaders[0]), strconv.Itoa(b.Leaders[1]),
			cluster.ByteCount(b.In), cluster.ByteCount(b.Out), size(b.Free), free})
	}
	columns(w, rows)
	if d.ISR != nil {
		fmt.Fprintf(w, "\nSmallest ISR meanwhile: %d, of %s.\n", *d.ISR, *d.ISRAt)
	}
	if d.Crowded != [2]int{} {
		fmt.Fprintf(w, "Partitions with more replicas in one rack than they must have: %d, after it %d.\n", d.Crowded[0], d.Crowded[1])
	}
	d.showWords(w)
}

func (d *planDocument) showWords(w io.Writer) {
	for _, text := range d.Warnings {
		fmt.Fprintf(w, "Warning: %s.\n", text)
	}
	for _, text := range d.Notes {
		fmt.Fprintf(w, "Note: %s.\n", text)
	}
}

// save writes a document into a new file. A file that is there may be the way back from another plan.
func save(path string, d any) error {
	if path == "" {
		return nil
	}
	text, err := asJSON(d, false)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// files writes what a plan's options ask for.
func (d *planDocument) files(c *call) error {
	if err := save(c.String("save"), d); err != nil {
		return err
	}
	return save(c.String("rollback"), d.Rollback)
}
