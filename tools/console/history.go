package console

import (
	"time"

	"barnabas/admin/cluster"
)

// history is the lag of groups over the last hour: a ring of samples for each group, and for each of its topics. It is bounded in groups and topics by maxSeries; groups that are gone are
// forgotten when their last sample has left the ring.
type history struct{ series map[seriesKey]*ring }

type seriesKey struct{ group, topic string } // topic "" is the whole group

const (
	samplePace = keepPace
	samples    = int(time.Hour / samplePace)
	maxSeries  = 4000 // of 6 kB each
)

// sample is a lag at a time.
type sample struct {
	at  int64 // Unix seconds
	lag int64
}

// ring has the samples in order from next on.
type ring struct {
	list [samples]sample
	next int
}

func (h *history) init() { h.series = map[seriesKey]*ring{} }

// note adds a sample of each group, unless one was taken just now.
func (h *history) note(g *groupsPicture) {
	at := g.taken.Unix()
	h.forget(at)
	for name, partitions := range g.partitions {
		if lag, known := cluster.TotalLag(partitions); known {
			h.add(seriesKey{name, ""}, sample{at, lag})
		}
		byTopic := map[string][]cluster.GroupPartition{}
		for _, p := range partitions {
			byTopic[p.Partition.Topic] = append(byTopic[p.Partition.Topic], p)
		}
		if len(byTopic) < 2 {
			continue // it is the group's
		}
		for topic, some := range byTopic {
			if lag, known := cluster.TotalLag(some); known {
				h.add(seriesKey{name, topic}, sample{at, lag})
			}
		}
	}
}

func (h *history) add(key seriesKey, s sample) {
	r := h.series[key]
	if r == nil {
		if len(h.series) >= maxSeries {
			return
		}
		r = &ring{}
		h.series[key] = r
	}
	if s.at-r.list[(r.next+samples-1)%samples].at < int64(samplePace.Seconds())-1 {
		return
	}
	r.list[r.next] = s
	r.next = (r.next + 1) % samples
}

func (h *history) forget(now int64) {
	for key, r := range h.series {
		if now-r.list[(r.next+samples-1)%samples].at > int64(time.Hour.Seconds()) {
			delete(h.series, key)
		}
	}
}

// of is a series in order, without what is older than an hour before its end.
func (h *history) of(group, topic string) []sample {
	r := h.series[seriesKey{group, topic}]
	if r == nil {
		return nil
	}
	var list []sample
	newest := r.list[(r.next+samples-1)%samples].at
	for i := range samples {
		if s := r.list[(r.next+i)%samples]; s.at > 0 && newest-s.at <= int64(time.Hour.Seconds()) {
			list = append(list, s)
		}
	}
	return list
}
