package console

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func texts(list []event) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Kind+": "+e.Text)
	}
	return out
}

func TestChangesBetweenLooksBecomeEvents(t *testing.T) {
	gone := withoutBroker(2)
	gone.Controller = 1
	assert.Equal(t, []string{
		"broker: broker 2 is not registered any more",
		"controller: broker 1 is the controller now",
		"isr: broker 2 left the in-sync replicas of orders-0, orders-1, orders-2",
		"leader: broker 3 leads orders-1 now",
	}, texts(changes(threeBrokers(), gone)))
	assert.Equal(t, []string{
		"broker: broker 2 is registered",
		"controller: broker 2 is the controller now",
		"isr: broker 2 is in sync again with orders-0, orders-1, orders-2",
		"leader: broker 2 leads orders-1 now",
	}, texts(changes(gone, threeBrokers())))
	assert.Empty(t, changes(threeBrokers(), threeBrokers()))
}

func TestEventsAreBounded(t *testing.T) {
	var e events
	for i := range 5 * mostEvents {
		e.add(event{Text: fmt.Sprint(i)})
	}
	assert.LessOrEqual(t, len(e.list), 2*mostEvents)
	assert.Equal(t, fmt.Sprint(5*mostEvents-1), e.recent(1)[0].Text)
	assert.Len(t, e.recent(10*mostEvents), mostEvents)
}

func lagAt(at time.Time, lag int64) *groupsPicture {
	return &groupsPicture{taken: at, partitions: map[string][]cluster.GroupPartition{"g": {{Partition: plan.Partition{Topic: "t"}, Current: 0, End: lag}}}}
}

func TestLagOfAnHourIsKept(t *testing.T) {
	var h history
	h.init()
	begin := time.Unix(1_800_000_000, 0)
	for i := range 2 * samples {
		h.note(lagAt(begin.Add(time.Duration(i)*samplePace), int64(i)))
		h.note(lagAt(begin.Add(time.Duration(i)*samplePace+time.Second), -1)) // a page looked too
	}
	list := h.of("g", "")
	require.Len(t, list, samples)
	assert.Equal(t, int64(samples), list[0].lag)
	assert.Equal(t, int64(2*samples-1), list[samples-1].lag)
	h.forget(begin.Add(10 * time.Hour).Unix())
	assert.Empty(t, h.series, "a group that is gone is forgotten")
}

func TestATrendIsAChangeOfATenthInMinutes(t *testing.T) {
	assert.Equal(t, 0, trend(nil))
	assert.Equal(t, 1, trend([]sample{{0, 100}, {180, 120}}))
	assert.Equal(t, -1, trend([]sample{{0, 100}, {180, 80}}))
	assert.Equal(t, 0, trend([]sample{{0, 100}, {180, 105}}))
	assert.Equal(t, 0, trend([]sample{{0, 1}, {1000, 100}, {1180, 101}}), "what was longer ago does not count")
}

func TestTheNumberOfSeriesIsBounded(t *testing.T) {
	var h history
	h.init()
	for i := range maxSeries + 10 {
		h.add(seriesKey{group: fmt.Sprint(i)}, sample{at: 100})
	}
	assert.Len(t, h.series, maxSeries)
}

func TestTheChartBreaksWhereNobodyLooked(t *testing.T) {
	now := time.Unix(1_800_003_600, 0)
	list := []sample{{now.Unix() - 3600, 0}, {now.Unix() - 3590, 50}, {now.Unix() - 600, 100}, {now.Unix() - 590, 120}}
	svg := string(lagChart(list, now))
	assert.Equal(t, 2, strings.Count(svg, "<polyline"))
	assert.Contains(t, svg, `<polyline class="line" points="70.0,145.0 73.1,111.2"/>`)
	assert.Contains(t, svg, ">200</text>")
	assert.NotContains(t, string(lagChart(nil, now)), "polyline")
}

func TestTheScaleEndsAtARoundNumber(t *testing.T) {
	for most, top := range map[int64]int64{0: 2, 1: 2, 3: 4, 9: 10, 11: 20, 79: 80, 81: 100, 999: 1000, 1_000_001: 2_000_000} {
		assert.Equal(t, top, niceTop(most), most)
	}
}

// stored is a topic of two partitions with numbered records, the odd ones in partition 1.
func stored(n int) (*fake, cluster.Topic) {
	f := newFake()
	for i := range n {
		at := plan.Partition{Topic: "orders", ID: int32(i % 2)}
		f.records[at] = append(f.records[at], &kgo.Record{Topic: "orders", Partition: at.ID, Offset: int64(i / 2), Timestamp: time.UnixMilli(int64(1000 + i)), Key: []byte("k"), Value: fmt.Append(nil, "v", i), Headers: []kgo.RecordHeader{{Key: "h", Value: fmt.Append(nil, i)}}})
	}
	t := f.snapshot.Topics[0]
	t.Partitions = t.Partitions[:2]
	return f, t
}

func values(f *found) []string {
	var out []string
	for _, r := range f.records {
		out = append(out, string(r.Value))
	}
	return out
}

func TestAScanReadsFromWhereItWasAsked(t *testing.T) {
	f, topic := stored(100)
	for _, c := range []struct {
		name string
		scan scan
		want []string
	}{
		{"newest first", scan{only: -1, from: "newest", most: 3}, []string{"v99", "v98", "v97"}},
		{"oldest first", scan{only: -1, from: "oldest", most: 3}, []string{"v0", "v1", "v2"}},
		{"from an offset", scan{only: 1, from: "offset", offset: 48, most: 9}, []string{"v97", "v99"}},
		{"from an offset beyond the end", scan{only: 1, from: "offset", offset: 480, most: 9}, nil},
		{"from a time", scan{only: -1, from: "time", at: 1097, most: 9}, []string{"v97", "v98", "v99"}},
		{"that hold a text", scan{only: -1, from: "newest", text: "v1", in: "value", most: 4}, []string{"v19", "v18", "v17", "v16"}},
		{"in a header", scan{only: -1, from: "oldest", text: "42", in: "header", most: 9}, []string{"v42"}},
		{"not in the key", scan{only: -1, from: "oldest", text: "42", in: "key", most: 9}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.scan.topic, c.scan.records = topic, scanRecords
			got, err := c.scan.run(context.Background(), f)
			require.NoError(t, err)
			assert.Equal(t, c.want, values(got))
			assert.Empty(t, got.Faults)
		})
	}
}

func TestAScanSaysHowFarItCameAndWhereToGoOn(t *testing.T) {
	f, topic := stored(100)
	got, err := scan{topic: topic, only: 0, from: "oldest", most: 10, records: scanRecords}.run(context.Background(), f)
	require.NoError(t, err)
	assert.Equal(t, int64(10), got.Next)
	assert.Equal(t, int64(50), got.Of)
	assert.Equal(t, "enough were found", got.Stopped)
	got, err = scan{topic: topic, only: 0, from: "oldest", text: "nowhere", in: "any", most: 10, records: 20}.run(context.Background(), f)
	require.NoError(t, err)
	assert.Equal(t, "enough records were read", got.Stopped)
	assert.Equal(t, int64(20), got.Scanned)
	assert.Equal(t, int64(20), got.Next)
}

func TestOnlyAFewScanAtOnce(t *testing.T) {
	s := serve(t, newFake(), nil)
	for range scansAtOnce {
		s.console.scans <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	q := question{values: url.Values{"name": {"orders"}}}
	_, err := s.console.snapshot(ctx, time.Minute)
	require.NoError(t, err)
	cancel()
	_, err = topicMessages(ctx, s.console, q)
	require.ErrorIs(t, err, context.Canceled, "it waits for a place")
	<-s.console.scans
	ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = topicMessages(ctx, s.console, q)
	require.NoError(t, err)
}

func TestBytesAreShownForPeople(t *testing.T) {
	assert.True(t, shown(nil).Null)
	assert.Equal(t, shownBytes{Text: "", Size: 0}, shown([]byte{}))
	assert.Equal(t, "a␛[31m␀\n", shown([]byte("a\x1b[31m\x00\n")).Text)
	assert.Equal(t, "a\uFFFDb", shown([]byte("a\u202eb")).Text)
	binary := shown([]byte{0xff, 0x00, 0x10})
	assert.True(t, binary.Binary)
	assert.Equal(t, "ff00 10", binary.Text)
	long := shown([]byte(strings.Repeat("ü", shownText)))
	assert.True(t, long.Cut)
	assert.LessOrEqual(t, len(long.Text), shownText)
	assert.Equal(t, 2*shownText, long.Size)
}

func TestASpreadsheetRunsNothing(t *testing.T) {
	assert.Equal(t, "'=cmd()", cell([]byte("=cmd()")))
	assert.Equal(t, "plain", cell([]byte("plain")))
}
