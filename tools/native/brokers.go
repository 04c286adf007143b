package native

import (
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
)

type brokersDocument struct {
	Version    int          `json:"version"`
	Controller *int64       `json:"controller"`
	Brokers    []brokerLine `json:"brokers"`
}

type brokerLine struct {
	ID         int32   `json:"id"`
	Host       string  `json:"host"`
	Port       int32   `json:"port"`
	Rack       *string `json:"rack"`
	Controller bool    `json:"controller"`
	Answering  bool    `json:"answering"`
	Leaders    int     `json:"leaders"`
	Preferred  int     `json:"preferred_leaders"` // partitions that it should lead
	Replicas   int     `json:"replicas"`
	OutOfSync  int     `json:"replicas_out_of_sync"`
	Size       *int64  `json:"size_bytes"`
	Error      *string `json:"error"` // why it does not answer
}

func (d *brokersDocument) show(w io.Writer) {
	rows := [][]string{{"BROKER", "ADDRESS", "RACK", "ROLE", "LEADERS", "PREFERRED", "REPLICAS", "OUT-OF-SYNC", "SIZE", "STATE"}}
	for _, b := range d.Brokers {
		role, state := "-", "answers"
		if b.Controller {
			role = "controller"
		}
		if b.Error != nil {
			state = "does not answer: " + *b.Error
		}
		rows = append(rows, []string{strconv.Itoa(int(b.ID)), net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), text(b.Rack), role, strconv.Itoa(b.Leaders), strconv.Itoa(b.Preferred), strconv.Itoa(b.Replicas),
			strconv.Itoa(b.OutOfSync), size(b.Size), state})
	}
	columns(w, rows)
}

// BrokerCommands are the sub-commands of what runs a broker.
func BrokerCommands() []*cli.Command { return []*cli.Command{brokerList(), brokerDrain()} }

func brokerList() *cli.Command {
	return command{
		name: "list", usage: "list the brokers of a cluster with what they lead and hold", watched: true,
		help: `Asks every registered broker whether it answers. A registered broker that does not is in the list, with the reason.

Fields: controller, brokers (id, host, port, rack, controller, answering, leaders, preferred_leaders, replicas, replicas_out_of_sync, size_bytes, error).`,
		run: func(c *call) (document, error) {
			s, err := c.cluster.Snapshot(c.ctx, time.Now(), false)
			if err != nil {
				return nil, err
			}
			return brokersOf(s), nil
		},
	}.build()
}

func brokersOf(s *cluster.Snapshot) *brokersDocument {
	d := &brokersDocument{documentVersion, known(int64(s.Controller)), []brokerLine{}}
	for _, b := range s.Brokers {
		line := brokerLine{ID: b.ID, Host: b.Host, Port: b.Port, Controller: b.ID == s.Controller, Answering: s.Silent[b.ID] == nil}
		if b.Rack != "" {
			line.Rack = &b.Rack
		}
		if err := s.Silent[b.ID]; err != nil {
			line.Error = words("%v", err)
		}
		if dirs, told := s.Dirs[b.ID]; told {
			line.Size = new(int64)
			for _, dir := range dirs {
				for _, r := range dir.Replicas {
					*line.Size += r.Size
				}
			}
		}
		for _, t := range s.Topics {
			for _, p := range t.Partitions {
				line.count(p)
			}
		}
		d.Brokers = append(d.Brokers, line)
	}
	return d
}

// count adds what the broker has of a partition.
func (b *brokerLine) count(p cluster.Partition) {
	if p.Leader == b.ID {
		b.Leaders++
	}
	if p.Preferred() == b.ID {
		b.Preferred++
	}
	if slices.Contains(p.Replicas, b.ID) {
		b.Replicas++
		if !slices.Contains(p.ISR, b.ID) {
			b.OutOfSync++
		}
	}
}
