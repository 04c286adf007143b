package console

import (
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"barnabas/admin/cluster"
)

func brokersPage() page {
	return page{path: "/brokers", title: "Brokers", file: "brokers.html", under: "/brokers", entry: true, pace: 2 * time.Second, live: []string{"brokers"}, data: brokers}
}

// brokersData is the list of brokers, each against the mean.
type brokersData struct {
	Brokers   []brokerRow
	Missing   []int32 // with replicas, and not registered
	Disagree  []cluster.Disagreement
	NotJudged []string
}

func brokers(ctx context.Context, c *Console, _ question) (any, error) {
	s, err := c.snapshot(ctx, 2*time.Second)
	if err != nil {
		return nil, err
	}
	return &brokersData{Brokers: brokerRows(s), Missing: missingBrokers(s), Disagree: s.Disagreements(), NotJudged: s.Unread}, nil
}

// missingBrokers have replicas and are not registered, by id.
func missingBrokers(s *cluster.Snapshot) []int32 {
	var missing []int32
	for _, t := range s.Topics {
		for _, p := range t.Partitions {
			for _, id := range p.Replicas {
				if !slices.ContainsFunc(s.Brokers, func(b cluster.Broker) bool { return b.ID == id }) {
					missing = append(missing, id)
				}
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// brokerRow is a broker in a list.
type brokerRow struct {
	ID            int32
	Address       string
	Rack          string
	Controller    bool
	Fault         string // why it does not answer
	Leaders       int
	Preferred     int // partitions that it should lead
	Replicas      int
	OutOfSync     int
	Bytes         int64 // -1: not known
	Total, Usable int64 // of its volumes; -1: not known
	FailedDirs    int
}

// Used is what is taken of the volumes, -1 where that is not known.
func (b brokerRow) Used() int64 {
	if b.Total < 0 {
		return -1
	}
	return b.Total - b.Usable
}

// brokerRows are all brokers, counted in one go through the partitions.
func brokerRows(s *cluster.Snapshot) []brokerRow {
	rows := make([]brokerRow, 0, len(s.Brokers))
	at := map[int32]*brokerRow{}
	for _, b := range s.Brokers {
		row := brokerRow{ID: b.ID, Address: net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), Rack: b.Rack, Controller: b.ID == s.Controller, Bytes: -1, Total: -1, Usable: -1}
		if err := s.Silent[b.ID]; err != nil {
			row.Fault = err.Error()
		}
		row.addDirs(s.Dirs[b.ID])
		rows = append(rows, row)
	}
	for i := range rows {
		at[rows[i].ID] = &rows[i]
	}
	for _, t := range s.Topics {
		for _, p := range t.Partitions {
			if b := at[p.Leader]; b != nil {
				b.Leaders++
			}
			if b := at[p.Preferred()]; b != nil {
				b.Preferred++
			}
			for _, id := range p.Replicas {
				b := at[id]
				if b == nil {
					continue
				}
				b.Replicas++
				if !slices.Contains(p.ISR, id) {
					b.OutOfSync++
				}
			}
		}
	}
	return rows
}

func (b *brokerRow) addDirs(dirs []cluster.Dir) {
	for i, d := range dirs {
		if i == 0 {
			b.Bytes = 0
		}
		if d.Err != nil {
			b.FailedDirs++
			continue
		}
		if d.Total >= 0 {
			b.Total, b.Usable = max(b.Total, 0)+d.Total, max(b.Usable, 0)+d.Usable
		}
		for _, r := range d.Replicas {
			b.Bytes += r.Size
		}
	}
}
