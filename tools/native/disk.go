package native

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
)

type diskDocument struct {
	Version int        `json:"version"`
	By      string     `json:"by"`
	Total   int64      `json:"total_bytes"` // of all replicas that were asked for
	Rows    []diskLine `json:"rows"`
}

// diskLine has what its kind of row is about; the other places are null.
type diskLine struct {
	Broker    *int64  `json:"broker"`
	Dir       *string `json:"log_dir"`
	Topic     *string `json:"topic"`
	Partition *int64  `json:"partition"`
	Replicas  int     `json:"replicas"`
	Size      int64   `json:"size_bytes"`
	Volume    *int64  `json:"volume_bytes"` // of log directories: the whole disk, and what is left of it
	Usable    *int64  `json:"usable_bytes"`
	OffsetLag *int64  `json:"offset_lag"` // of partitions
	Future    bool    `json:"future"`     // a replica that is moving into this directory
	Error     *string `json:"error"`      // why a directory is out of use
}

func (d *diskDocument) show(w io.Writer) {
	heads := map[string][]string{"broker": {"BROKER"}, "dir": {"BROKER", "DIR"}, "topic": {"TOPIC"}, "partition": {"TOPIC", "PARTITION", "BROKER", "DIR"}}
	head := append(slices.Clone(heads[d.By]), "SIZE", "REPLICAS")
	switch d.By {
	case "dir":
		head = append(head, "VOLUME", "USABLE", "STATE")
	case "partition":
		head = append(slices.Clone(heads[d.By]), "SIZE", "OFFSET-LAG", "STATE")
	}
	rows := [][]string{head}
	for _, r := range d.Rows {
		cells := map[string]string{"BROKER": maybe(r.Broker), "DIR": text(r.Dir), "TOPIC": text(r.Topic), "PARTITION": maybe(r.Partition), "SIZE": cluster.ByteCount(r.Size), "REPLICAS": strconv.Itoa(r.Replicas),
			"VOLUME": size(r.Volume), "USABLE": size(r.Usable), "OFFSET-LAG": maybe(r.OffsetLag), "STATE": "in use"}
		switch {
		case r.Error != nil:
			cells["STATE"] = "out of use: " + *r.Error
		case r.Future:
			cells["STATE"] = "moving here"
		}
		var row []string
		for _, name := range head {
			row = append(row, cells[name])
		}
		rows = append(rows, row)
	}
	columns(w, rows)
}

func size(n *int64) string {
	if n == nil {
		return "-"
	}
	return cluster.ByteCount(*n)
}

var diskKinds = []string{"broker", "dir", "topic", "partition"}

func disk() *cli.Command {
	c := command{
		name: "disk", usage: "show what takes how much room on the brokers' disks", watched: true,
		help: `Sizes are those of the brokers' log directories, of all replicas. Volumes are told by brokers from 3.3 on.

Fields: by, total_bytes, rows (broker, log_dir, topic, partition, replicas, size_bytes, volume_bytes, usable_bytes, offset_lag, future, error). A row has what it is about; the rest is null.

    barnabas disk --by topic --top 10
    barnabas disk --by partition --topic orders --broker 2 -o json`,
		flags: []cli.Flag{
			byFlag(diskKinds, "dir"),
			&cli.IntFlag{Name: "broker", Value: -1, DefaultText: "all", Usage: "only the broker with this `ID`"},
			&cli.StringFlag{Name: "topic", Usage: "only replicas of `TOPIC`"},
			&cli.StringFlag{Name: "sort", Value: "size", Usage: "size with the largest first, or name"},
			topFlag(),
		},
		run: func(c *call) (document, error) {
			by, err := c.kind(diskKinds)
			if err != nil {
				return nil, err
			}
			order := c.String("sort")
			if order != "size" && order != "name" {
				return nil, wrongUsage("--sort %s is neither size nor name", order)
			}
			if c.IsSet("topic") {
				if err := c.needTopics([]string{c.String("topic")}); err != nil {
					return nil, err
				}
			}
			dirs, err := c.cluster.AllDirs(c.ctx)
			if err != nil {
				return nil, err
			}
			if asked := c.Int("broker"); c.IsSet("broker") {
				id := int32(asked)
				of, there := dirs[id]
				if !there || int(id) != asked {
					return nil, &cluster.NotFoundError{Kind: "broker", Name: strconv.Itoa(asked)}
				}
				dirs = map[int32][]cluster.Dir{id: of}
			}
			d := diskOf(dirs, by, c.String("topic"))
			if order == "size" {
				slices.SortStableFunc(d.Rows, func(a, b diskLine) int { return cmp.Compare(b.Size, a.Size) })
			}
			d.Rows = topRows(c, d.Rows)
			return d, nil
		},
	}.build()
	c.Category = category
	return c
}

// diskOf adds up what lies in directories, of one topic or of all, by name.
func diskOf(dirs map[int32][]cluster.Dir, by, topic string) *diskDocument {
	d := &diskDocument{Version: documentVersion, By: by, Rows: []diskLine{}}
	topics := map[string]*diskLine{}
	for _, id := range slices.Sorted(maps.Keys(dirs)) {
		broker := int64(id)
		whole := diskLine{Broker: &broker}
		for _, dir := range dirs[id] {
			row := diskLine{Broker: &broker, Dir: &dir.Path, Volume: known(dir.Total), Usable: known(dir.Usable)}
			if dir.Err != nil {
				row.Error = words("%v", dir.Err)
			}
			for _, r := range dir.Replicas {
				if topic != "" && r.Partition.Topic != topic {
					continue
				}
				d.Total += r.Size
				of := topics[r.Partition.Topic]
				if of == nil {
					of = &diskLine{Topic: &r.Partition.Topic}
					topics[r.Partition.Topic] = of
				}
				for _, sum := range []*diskLine{&row, &whole, of} {
					sum.Size += r.Size
					sum.Replicas++
				}
				if number := int64(r.Partition.ID); by == "partition" {
					d.Rows = append(d.Rows, diskLine{Broker: &broker, Dir: &dir.Path, Topic: &r.Partition.Topic, Partition: &number, Replicas: 1, Size: r.Size, OffsetLag: &r.OffsetLag, Future: r.Future})
				}
			}
			if by == "dir" {
				d.Rows = append(d.Rows, row)
			}
		}
		if by == "broker" {
			d.Rows = append(d.Rows, whole)
		}
	}
	switch by {
	case "topic":
		for _, name := range slices.Sorted(maps.Keys(topics)) {
			d.Rows = append(d.Rows, *topics[name])
		}
	case "partition":
		slices.SortStableFunc(d.Rows, func(a, b diskLine) int {
			return cmp.Or(cmp.Compare(*a.Topic, *b.Topic), cmp.Compare(*a.Partition, *b.Partition))
		})
	}
	return d
}
