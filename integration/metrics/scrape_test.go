package metrics

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

const patience = time.Minute

// exposed is a broker whose metrics are served.
type exposed struct {
	*cluster.Broker
	url string
}

func start(t *testing.T, brokers int, settings map[string]string) (*cluster.Cluster, []exposed) {
	t.Helper()
	urls := map[int]string{}
	c := cluster.StartEach(t, zktest.Embedded(t).Addr(), brokers, settings, func(id int) map[string]string {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t)))
		urls[id] = "http://" + address + "/metrics"
		return map[string]string{"barnabas.metrics.listener": address}
	})
	var all []exposed
	for _, b := range c.Brokers {
		all = append(all, exposed{b, urls[b.ID]})
	}
	return c, all
}

type scrape struct {
	t        require.TestingT
	families map[string]*dto.MetricFamily
}

var client = http.Client{Timeout: patience}

func (e exposed) scrape(t require.TestingT) scrape {
	resp, err := client.Get(e.url)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(resp.Body)
	require.NoError(t, err)
	return scrape{t, families}
}

// value is that of a name with just these labels, as "topic=a,partition=0" in the order in which they are shown; NaN
// never equals, so what is missing fails.
func (s scrape) value(name, labels string) float64 {
	v, ok := s.find(name, labels)
	if !ok {
		require.Fail(s.t, "missing", "%s{%s}", name, labels)
	}
	return v
}

func (s scrape) find(name, labels string) (float64, bool) {
	for _, m := range s.families[name].GetMetric() {
		var has []string
		for _, l := range m.Label {
			has = append(has, l.GetName()+"="+l.GetValue())
		}
		if strings.Join(has, ",") == labels {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue(), true
		}
	}
	return 0, false
}

func call(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func dial(t *testing.T, c *cluster.Cluster, more ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(10 * time.Millisecond)}, more...)...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

const topicPrefix = "kafka_server_brokertopicmetrics_"

func TestMetricsTellWhatWasDone(t *testing.T) {
	c, brokers := start(t, 2, map[string]string{
		"group.initial.rebalance.delay.ms": "0", "replica.lag.time.max.ms": "4000",
		"zookeeper.session.timeout.ms": "30000", // a broker that is paused stays registered
	})
	kc := dial(t, c, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	adm := kadm.NewClient(kc)
	_, err := adm.CreateTopic(call(t), 2, 2, nil, "orders")
	require.NoError(t, err)
	c.WaitWhole(t, "orders", 2, 2)

	const records, size = 500, 100
	for i := range records {
		kc.Produce(call(t), &kgo.Record{Topic: "orders", Partition: int32(i % 2), Value: make([]byte, size)}, nil)
	}
	require.NoError(t, kc.Flush(call(t)))
	reader := dial(t, c, kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("readers"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for got := 0; got < records; {
		fetches := reader.PollFetches(call(t))
		require.NoError(t, fetches.Err())
		got += fetches.NumRecords()
	}

	var first, second scrape
	total := func(name, labels string) float64 { return first.value(name, labels) + second.value(name, labels) }
	require.EventuallyWithT(t, func(try *assert.CollectT) {
		first, second = brokers[0].scrape(try), brokers[1].scrape(try)
		require.EqualValues(try, records, total(topicPrefix+"messagesin_total", "topic=orders"))
		require.EqualValues(try, 2, total("kafka_controller_kafkacontroller_activebrokercount", ""), "the controller's counts are taken each second")
		require.Greater(try, total("kafka_controller_kafkacontroller_globalpartitioncount", ""), 2.0)
		require.EqualValues(try, 1, total("kafka_coordinator_group_groupmetadatamanager_numgroupsstable", ""))
		require.Equal(try, total(topicPrefix+"bytesin_total", "topic=orders"), total(topicPrefix+"replicationbytesin_total", "topic=orders"), "each follower has it all")
		require.EqualValues(try, 2, total("kafka_server_replicamanager_leadercount", "")-50, "two of orders, fifty of the groups' offsets")
		require.EqualValues(try, 104, total("kafka_server_replicamanager_partitioncount", ""))
		require.Zero(try, total("kafka_server_replicamanager_underreplicatedpartitions", ""))
	}, patience, 100*time.Millisecond)
	first.t, second.t = t, t

	bytes := total(topicPrefix+"bytesin_total", "topic=orders")
	assert.Greater(t, bytes, float64(records*size))
	assert.Less(t, bytes, float64(2*records*size))
	assert.Equal(t, bytes, total(topicPrefix+"bytesout_total", "topic=orders"))
	assert.Equal(t, bytes, total(topicPrefix+"replicationbytesout_total", "topic=orders"))
	assert.Greater(t, total(topicPrefix+"messagesin_total", ""), float64(records), "the group's offsets topic is counted in the sum")
	assert.Positive(t, total(topicPrefix+"totalproducerequests_total", "topic=orders"))
	assert.Positive(t, total(topicPrefix+"totalfetchrequests_total", "topic=orders"))
	assert.Zero(t, total(topicPrefix+"failedproducerequests_total", ""))
	assert.EqualValues(t, 1, total("kafka_controller_kafkacontroller_activecontrollercount", ""))
	assert.Zero(t, total("kafka_controller_kafkacontroller_offlinepartitionscount", ""))
	var ends float64
	for p := range 2 {
		at := fmt.Sprintf("partition=%d,topic=orders", p)
		assert.Equal(t, first.value("kafka_log_log_logendoffset", at), second.value("kafka_log_log_logendoffset", at), "both replicas")
		assert.EqualValues(t, 2, max(first.value("kafka_cluster_partition_insyncreplicascount", at), second.value("kafka_cluster_partition_insyncreplicascount", at)))
		ends += first.value("kafka_log_log_logendoffset", at)
	}
	assert.EqualValues(t, records, ends)
	for _, s := range []scrape{first, second} {
		assert.EqualValues(t, 3, s.value("kafka_server_kafkaserver_brokerstate", ""))
		assert.Positive(t, s.value("kafka_network_requestmetrics_totaltimems_count", "request=FetchFollower"))
		assert.Positive(t, s.value("kafka_network_requestmetrics_totaltimems", "quantile=0.99,request=Fetch"))
		assert.Positive(t, s.value("kafka_server_socket_server_metrics_connection_count", ""))
		assert.GreaterOrEqual(t, s.value("kafka_server_socket_server_metrics_connection_accept_rate", "listener=PLAINTEXT"), 0.0)
		neverNegative(t, s)
	}

	leader, paused := brokers[0], brokers[1]
	if first.value("kafka_controller_kafkacontroller_activecontrollercount", "") == 0 {
		leader, paused = paused, leader // who is the controller has to agree to an in-sync set
	}
	led := int32(0)
	if leader.scrape(t).value("kafka_cluster_partition_replicascount", "partition=0,topic=orders") == 0 {
		led = 1 // each broker leads one of the two
	}
	at := fmt.Sprintf("partition=%d,topic=orders", led)
	paused.Pause(t)
	alone := dial(t, c, kgo.SeedBrokers(leader.Addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	require.NoError(t, alone.ProduceSync(call(t), &kgo.Record{Topic: "orders", Partition: led, Value: []byte("to one")}).FirstErr())
	require.EventuallyWithT(t, func(try *assert.CollectT) {
		s := leader.scrape(try)
		require.EqualValues(try, 1, s.value("kafka_cluster_partition_underreplicated", at))
		require.EqualValues(try, 1, s.value("kafka_cluster_partition_insyncreplicascount", at))
		require.Positive(try, s.value("kafka_server_replicamanager_underreplicatedpartitions", ""))
		require.Positive(try, s.value("kafka_server_replicamanager_isrshrinks_total", ""))
	}, patience, 100*time.Millisecond)
	paused.Resume(t)
	require.EventuallyWithT(t, func(try *assert.CollectT) {
		s := leader.scrape(try)
		require.Zero(try, s.value("kafka_server_replicamanager_underreplicatedpartitions", ""))
		require.Equal(try, s.value("kafka_server_replicamanager_isrshrinks_total", ""), s.value("kafka_server_replicamanager_isrexpands_total", ""))
	}, patience, 100*time.Millisecond)

	before := brokers[0].scrape(t)
	_, err = adm.DeleteTopics(call(t), "orders")
	require.NoError(t, err)
	require.EventuallyWithT(t, func(try *assert.CollectT) {
		after := brokers[0].scrape(try)
		for name, f := range after.families {
			for _, m := range f.Metric {
				for _, l := range m.Label {
					require.NotEqual(try, "orders", l.GetValue(), "%s of a topic that is gone", name)
				}
			}
		}
		require.GreaterOrEqual(try, after.value(topicPrefix+"messagesin_total", ""), before.value(topicPrefix+"messagesin_total", ""), "a sum never goes back")
	}, patience, 100*time.Millisecond)
}

// neverNegative looks at everything but the runtime's own values.
func neverNegative(t *testing.T, s scrape) {
	for name, f := range s.families {
		if !strings.HasPrefix(name, "kafka_") && !strings.HasPrefix(name, "barnabas_") {
			continue
		}
		assert.NotEmpty(t, f.GetHelp(), name)
		seen := map[string]bool{}
		for _, m := range f.Metric {
			assert.GreaterOrEqual(t, m.GetGauge().GetValue()+m.GetCounter().GetValue(), 0.0, "%s %v", name, m.Label)
			labels := fmt.Sprint(m.Label)
			assert.False(t, seen[labels], "%s %s is there twice", name, labels)
			seen[labels] = true
		}
	}
}

func TestABrokerWhoseMetricsCannotBeServedSaysSoAndEnds(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	c := cluster.Prepare(t, zktest.Embedded(t).Addr(), 1, map[string]string{"barnabas.metrics.listener": taken.Addr().String()}, func(int) map[string]string { return nil })
	c.Brokers[0].Start(t)
	assert.NotZero(t, c.Brokers[0].ExitCode(t, patience))
	assert.Contains(t, c.Brokers[0].LogTail(4000), "barnabas.metrics.listener "+taken.Addr().String())
}
