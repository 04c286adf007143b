package metrics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return logrus.NewEntry(log)
}

// scraped asks a server over HTTP and reads the answer with Prometheus' own parser.
func scraped(t *testing.T, r *Registry) map[string]*dto.MetricFamily {
	t.Helper()
	s, err := Serve("127.0.0.1:0", r, quiet())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + s.Addr().String() + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(resp.Body)
	require.NoError(t, err)
	return families
}

func valueOf(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	require.Contains(t, families, name)
	for _, m := range families[name].Metric {
		var has []string
		for _, l := range m.Label {
			has = append(has, l.GetName()+"="+l.GetValue())
		}
		if slices.Equal(has, labels) {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	t.Fatalf("%s has no value with the labels %v", name, labels)
	return 0
}

func TestAScrapeIsReadByPrometheusOwnParser(t *testing.T) {
	r := New()
	r.Add(func(s *Scrape) {
		s.Set(&BytesIn, 1e12)
		s.With(Label{"topic", `quo"te\`}).Set(&BytesIn, 3)
		at := s.With(Label{"topic", "a"}, Label{"partition", "7"})
		at.Set(&LogSize, 12)
		at.Set(&LogEndOffset, 99)
	})
	r.Add(func(s *Scrape) { s.With(Label{"topic", "b"}, Label{"partition", "0"}).Set(&LogSize, 13) })

	got := scraped(t, r)
	assert.Equal(t, 1e12, valueOf(t, got, BytesIn.Name))
	assert.Equal(t, 3.0, valueOf(t, got, BytesIn.Name, `topic=quo"te\`))
	assert.Equal(t, 12.0, valueOf(t, got, LogSize.Name, "partition=7", "topic=a"))
	assert.Equal(t, 13.0, valueOf(t, got, LogSize.Name, "partition=0", "topic=b"), "a family may have several sources")
	assert.Equal(t, 99.0, valueOf(t, got, LogEndOffset.Name, "partition=7", "topic=a"))
	assert.Equal(t, dto.MetricType_COUNTER, got[BytesIn.Name].GetType())
	assert.Equal(t, dto.MetricType_GAUGE, got[LogSize.Name].GetType())
	assert.Positive(t, valueOf(t, got, "go_goroutines"))
	assert.Positive(t, valueOf(t, got, "process_start_time_seconds"))
	for name, f := range got {
		assert.NotEmpty(t, f.GetHelp(), name)
		assert.NotEqual(t, dto.MetricType_UNTYPED, f.GetType(), name)
	}
}

// families are what names.go declares, as its text has them.
func families(t *testing.T) (names []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		kind := call.Fun.(*ast.Ident).Name
		name, err := strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		names = append(names, name)
		counts := strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_count") && strings.Contains(name, "totaltimems") || strings.HasSuffix(name, "_sum")
		assert.Equal(t, counts, kind == "counter", "%s: what only grows is named so", name)
		return true
	})
	return names
}

// testdata/kafka-3.9.1.txt is what the exporter's kafka-2_0_0.yml makes of all MBeans of a running Kafka 3.9.1: a name
// and its labels on each line.
func TestNamesAreThoseThatTheJMXExporterGivesKafkas(t *testing.T) {
	text, err := os.ReadFile("testdata/kafka-3.9.1.txt")
	require.NoError(t, err)
	kafkas := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		kafkas[strings.Fields(line)[0]] = true
	}
	// A sum makes averages possible, which the exporter leaves out; of the connections and of exempt time there is no rule in
	// that file; that Kafka had no quotas, for which there is one.
	ours := []string{RequestTimeSum.Name, Connections.Name, ExemptRequestTime.Name, AcceptRate.Name, BrokerAcceptRate.Name, AcceptThrottle.Name, AcceptThrottleOfIP.Name,
		QuotaByteRate.Name, QuotaRequestTime.Name, QuotaMutationRate.Name, QuotaTokens.Name, QuotaThrottleTime.Name}
	names := families(t)
	require.Greater(t, len(names), 50)
	for _, name := range names {
		assert.True(t, model.LegacyValidation.IsValidMetricName(name), name)
		if !strings.HasPrefix(name, "barnabas_") && !slices.Contains(ours, name) {
			assert.True(t, kafkas[name], "%s is not among Kafka's", name)
		}
	}
	slices.Sort(names)
	assert.Equal(t, slices.Compact(slices.Clone(names)), names)
}

func TestRequestsAreCountedByVersionAndTimed(t *testing.T) {
	q := NewRequests([]API{{Key: 0, Name: "Produce", MaxVersion: 11}, {Key: 1, Name: "Fetch", MaxVersion: 17}, {Key: 3, Name: "Metadata", MaxVersion: 12}, {Key: 12, Name: "Heartbeat", MaxVersion: 4}})
	for range 98 {
		q.Answered(0, 9, time.Millisecond)
	}
	q.Answered(0, 11, time.Second)
	q.Answered(0, 11, time.Second)
	q.Answered(1, 17, 500*time.Millisecond)
	q.Fetched(true, 500*time.Millisecond)
	assert.Zero(t, testing.AllocsPerRun(100, func() { q.Answered(3, 12, time.Millisecond) }), "it is counted on the hot path")
	for _, bad := range [][2]int16{{-1, 0}, {2, 0}, {13, 0}, {0, -1}, {0, 12}} {
		q.Answered(bad[0], bad[1], time.Second)
	}

	r := New()
	r.Add(func(s *Scrape) { q.Collect(s, time.Unix(1000, 0)) })
	got := scraped(t, r)
	assert.Equal(t, 98.0, valueOf(t, got, RequestsTotal.Name, "request=Produce", "version=9"))
	assert.Equal(t, 2.0, valueOf(t, got, RequestsTotal.Name, "request=Produce", "version=11"))
	assert.Equal(t, 100.0, valueOf(t, got, RequestTimeCount.Name, "request=Produce"))
	assert.Equal(t, 2098.0, valueOf(t, got, RequestTimeSum.Name, "request=Produce"))
	assert.InEpsilon(t, 1, valueOf(t, got, RequestTime.Name, "quantile=0.50", "request=Produce"), 1.0/8)
	assert.InEpsilon(t, 1000, valueOf(t, got, RequestTime.Name, "quantile=0.99", "request=Produce"), 1.0/8)
	assert.InEpsilon(t, 500, valueOf(t, got, RequestTime.Name, "quantile=0.999", "request=FetchFollower"), 1.0/8)
	for _, m := range got[RequestsTotal.Name].Metric {
		assert.NotEqual(t, "Heartbeat", m.Label[0].GetValue(), "what was not asked is not shown")
	}
}

func TestEachTimeFallsIntoABucketThatHoldsIt(t *testing.T) {
	last := -1
	for micros := uint64(0); micros < 1<<20; micros += 1 + micros/50 {
		b := bucketOf(micros)
		require.GreaterOrEqual(t, b, last)
		require.LessOrEqual(t, micros, topOf(b))
		if b > 0 {
			require.Greater(t, micros, topOf(b-1))
		}
		require.LessOrEqual(t, float64(topOf(b)), float64(micros)*(1+1.0/perDoubling)+1)
		last = b
	}
	assert.Equal(t, buckets-1, bucketOf(math.MaxUint64), "what takes for ever has a place")
	var l latency
	l.add(-time.Second)
	l.add(math.MaxInt64)
	assert.EqualValues(t, 2, l.count.Load())
}

func TestQuantilesTellOfTheLastMinutes(t *testing.T) {
	var l latency
	var w window
	now := time.Unix(0, 0)
	for range 100 {
		l.add(time.Second)
	}
	first := w.since(now, l.load())
	assert.InEpsilon(t, 1000, first.quantile(0.5), 0.2)
	for range 10 { // quick ones from now on, and a scrape every half minute
		for range 5 {
			l.add(time.Millisecond)
		}
		now = now.Add(30 * time.Second)
		w.since(now, l.load())
	}
	now = now.Add(windowLength)
	l.add(time.Millisecond)
	later := w.since(now, l.load())
	assert.InEpsilon(t, 1, later.quantile(0.999), 0.2)
	now = now.Add(windowLength)
	idle := w.since(now, l.load())
	assert.Zero(t, idle.quantile(0.99), "nothing was asked lately")
	assert.LessOrEqual(t, len(w.kept), int(windowLength/windowStep)+2, "what is kept is bounded")
}

func TestAClosedServerAnswersNothingAndAnAddressIsTakenOnce(t *testing.T) {
	s, err := Serve("127.0.0.1:0", New(), quiet())
	require.NoError(t, err)
	_, err = Serve(s.Addr().String(), New(), quiet())
	require.Error(t, err)
	require.NoError(t, s.Close())
	client := http.Client{Timeout: 5 * time.Second}
	_, err = client.Get("http://" + s.Addr().String() + "/metrics")
	require.Error(t, err)
}

func BenchmarkAnsweredRequest(b *testing.B) {
	q := NewRequests([]API{{Key: 0, Name: "Produce", MaxVersion: 11}})
	b.ReportAllocs()
	for b.Loop() {
		q.Answered(0, 9, 1234*time.Microsecond)
	}
}

func BenchmarkScrapeOfTenThousandPartitions(b *testing.B) {
	r := New()
	r.Add(func(s *Scrape) {
		for i := range 10_000 {
			at := s.With(Label{"topic", "topic-" + strconv.Itoa(i/10)}, Label{"partition", strconv.Itoa(i % 10)})
			for _, f := range []*Family{&LogSize, &LogEndOffset, &LogStartOffset, &LogSegments, &PartitionUnderReplicated, &PartitionUnderMinISR,
				&PartitionAtMinISR, &PartitionReplicas, &PartitionInSync, &StableOffsetLag} {
				at.Set(f, float64(i))
			}
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		families, err := r.Gather()
		require.NoError(b, err)
		enc := expfmt.NewEncoder(io.Discard, expfmt.NewFormat(expfmt.TypeTextPlain))
		for _, f := range families {
			require.NoError(b, enc.Encode(f))
		}
	}
}
