package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	ibm "github.com/IBM/sarama"
	shopify "github.com/Shopify/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/lane"
)

// memberKind is one kind of consumer. start lets one join the stage's group, from the earliest offset on, and returns what makes it commit and leave.
type memberKind struct {
	needs func(t *testing.T)
	alone bool // not in a group with other kinds
	start func(t *testing.T, s *groupStage) (stop func())
}

var memberKinds = map[string]memberKind{
	"franz-go":              {alone: true, start: franzMember},
	"ibm-sarama":            {alone: true, start: ibmSaramaMember},
	"shopify-sarama":        {alone: true, start: shopifySaramaMember},
	"kafka-go":              {alone: true, start: kafkaGoMember},
	"kcat":                  {needs: func(t *testing.T) { lane.Program(t, "kcat") }, start: kcatMember},
	"java-console-3.9.1":    {needs: needJava("3.9.1"), start: javaConsoleMember("3.9.1", "org.apache.kafka.tools.consumer.ConsoleConsumer")},
	"java-console-2.8.2":    {needs: needJava("2.8.2"), start: javaConsoleMember("2.8.2", "kafka.tools.ConsoleConsumer")},
	"java-verifiable-3.9.1": {needs: needJava("3.9.1"), start: javaVerifiableMember("3.9.1")},
}

func needJava(version string) func(*testing.T) {
	return func(t *testing.T) {
		lane.Java(t)
		lane.KafkaJars(t, version)
	}
}

const memberHeartbeat = 300 * time.Millisecond

func franzMember(t *testing.T, s *groupStage) func() {
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(s.bootstrap, ",")...), kgo.ConsumerGroup(s.group), kgo.ConsumeTopics(s.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(kgo.RangeBalancer()), kgo.HeartbeatInterval(memberHeartbeat), kgo.FetchMaxWait(100*time.Millisecond), kgo.MetadataMinAge(50*time.Millisecond), kgo.AlwaysRetryEOF())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { s.seen.saw(r.Partition, r.Offset) })
		}
	}()
	return func() {
		cancel()
		<-done
		require.NoError(t, cl.CommitUncommittedOffsets(lane.Patience(t)))
		cl.Close()
	}
}

type ibmHandler struct{ s *groupStage }

func (ibmHandler) Setup(ibm.ConsumerGroupSession) error   { return nil }
func (ibmHandler) Cleanup(ibm.ConsumerGroupSession) error { return nil }
func (h ibmHandler) ConsumeClaim(session ibm.ConsumerGroupSession, claim ibm.ConsumerGroupClaim) error {
	for m := range claim.Messages() {
		h.s.seen.saw(m.Partition, m.Offset)
		session.MarkMessage(m, "")
	}
	return nil
}

func ibmSaramaMember(t *testing.T, s *groupStage) func() {
	cfg := ibmSaramaConfig("none")
	cfg.Consumer.Offsets.Initial = ibm.OffsetOldest
	cfg.Consumer.Group.Heartbeat.Interval = memberHeartbeat
	cfg.Consumer.Group.Rebalance.GroupStrategies = []ibm.BalanceStrategy{ibm.NewBalanceStrategyRange()}
	g, err := ibm.NewConsumerGroup(strings.Split(s.bootstrap, ","), s.group, cfg)
	require.NoError(t, err)
	return saramaLoop(t, g.Close, func(ctx context.Context) error { return g.Consume(ctx, []string{s.topic}, ibmHandler{s}) })
}

type shopifyHandler struct{ s *groupStage }

func (shopifyHandler) Setup(shopify.ConsumerGroupSession) error   { return nil }
func (shopifyHandler) Cleanup(shopify.ConsumerGroupSession) error { return nil }
func (h shopifyHandler) ConsumeClaim(session shopify.ConsumerGroupSession, claim shopify.ConsumerGroupClaim) error {
	for m := range claim.Messages() {
		h.s.seen.saw(m.Partition, m.Offset)
		session.MarkMessage(m, "")
	}
	return nil
}

func shopifySaramaMember(t *testing.T, s *groupStage) func() {
	cfg := shopify.NewConfig()
	cfg.Version = shopify.V2_8_0_0
	cfg.Consumer.Offsets.Initial = shopify.OffsetOldest
	cfg.Consumer.Group.Heartbeat.Interval = memberHeartbeat
	cfg.Consumer.Group.Rebalance.GroupStrategies = []shopify.BalanceStrategy{shopify.BalanceStrategyRange}
	g, err := shopify.NewConsumerGroup(strings.Split(s.bootstrap, ","), s.group, cfg)
	require.NoError(t, err)
	return saramaLoop(t, g.Close, func(ctx context.Context) error { return g.Consume(ctx, []string{s.topic}, shopifyHandler{s}) })
}

// saramaLoop consumes session after session, as its documentation asks.
func saramaLoop(t *testing.T, closeGroup func() error, consume func(context.Context) error) func() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := consume(ctx); err != nil && ctx.Err() == nil {
				t.Logf("consuming: %v", err)
				time.Sleep(100 * time.Millisecond) // the pace of trying again
			}
		}
	}()
	return func() {
		cancel()
		<-done
		require.NoError(t, closeGroup())
	}
}

func kafkaGoMember(t *testing.T, s *groupStage) func() {
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: strings.Split(s.bootstrap, ","), GroupID: s.group, Topic: s.topic, StartOffset: kafka.FirstOffset, MaxWait: 100 * time.Millisecond,
		HeartbeatInterval: memberHeartbeat, JoinGroupBackoff: 100 * time.Millisecond, GroupBalancers: []kafka.GroupBalancer{kafka.RangeGroupBalancer{}},
	})
	ctx, cancel := context.WithCancel(context.Background())
	patient := lane.Patience(t) // what was read is committed though the member is to leave
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			m, err := r.FetchMessage(ctx)
			if err != nil {
				return
			}
			s.seen.saw(int32(m.Partition), m.Offset)
			for err = r.CommitMessages(patient, m); err != nil && ctx.Err() == nil; err = r.CommitMessages(ctx, m) {
				time.Sleep(50 * time.Millisecond) // the pace of trying again
			}
		}
	}()
	return func() {
		cancel()
		<-done
		require.NoError(t, r.Close())
	}
}

func kcatMember(t *testing.T, s *groupStage) func() {
	return programMember(t, s, plainLine, "kcat", "-b", s.bootstrap, "-G", s.group, "-u", "-f", "%p %o\n", "-X", "auto.offset.reset=earliest",
		"-X", "partition.assignment.strategy=range", "-X", "heartbeat.interval.ms=300", "-X", "fetch.wait.max.ms=100", s.topic)
}

func plainLine(s *groupStage, line string) {
	var partition int32
	var offset int64
	if _, err := fmt.Sscan(line, &partition, &offset); err == nil {
		s.seen.saw(partition, offset)
	}
}

func javaConsoleMember(version, class string) func(*testing.T, *groupStage) func() {
	return func(t *testing.T, s *groupStage) func() {
		return programMember(t, s, func(s *groupStage, line string) {
			line = strings.NewReplacer("Partition:", "", "Offset:", "", "\t", " ").Replace(line)
			plainLine(s, line)
		}, "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", lane.KafkaJars(t, version)+"/*", class, "--bootstrap-server", s.bootstrap, "--topic", s.topic,
			"--group", s.group, "--from-beginning", "--property", "print.partition=true", "--property", "print.offset=true", "--property", "print.value=false",
			"--consumer-property", "heartbeat.interval.ms=300", "--consumer-property", "fetch.max.wait.ms=100")
	}
}

func javaVerifiableMember(version string) func(*testing.T, *groupStage) func() {
	return func(t *testing.T, s *groupStage) func() {
		return programMember(t, s, verifiableLine, "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", lane.KafkaJars(t, version)+"/*",
			"org.apache.kafka.tools.VerifiableConsumer", "--bootstrap-server", s.bootstrap, "--topic", s.topic, "--group-id", s.group, "--reset-policy", "earliest",
			"--session-timeout", "10000", "--enable-autocommit")
	}
}

func verifiableLine(s *groupStage, line string) {
	var said struct {
		Name       string `json:"name"`
		Partitions []struct {
			Partition int32 `json:"partition"`
			Min       int64 `json:"minOffset"`
			Max       int64 `json:"maxOffset"`
		} `json:"partitions"`
	}
	if json.Unmarshal([]byte(line), &said) != nil || said.Name != "records_consumed" {
		return
	}
	for _, p := range said.Partitions {
		for o := p.Min; o <= p.Max; o++ {
			s.seen.saw(p.Partition, o)
		}
	}
}

// programMember runs a consumer as a process, and ends it by SIGTERM, on which each of these commits and leaves.
func programMember(t *testing.T, s *groupStage, line func(*groupStage, string), name string, args ...string) func() {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for in := bufio.NewScanner(out); in.Scan(); {
			line(s, in.Text())
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	end := func(sig syscall.Signal) bool {
		_ = cmd.Process.Signal(sig)
		select {
		case <-done:
			return true
		case <-time.After(patience):
			return false
		}
	}
	t.Cleanup(func() {
		select {
		case <-done:
		default:
			end(syscall.SIGKILL)
		}
		if t.Failed() {
			c := complaints.String()
			t.Logf("%s said: %s", name, c[max(0, len(c)-2000):])
		}
	})
	return func() { require.True(t, end(syscall.SIGTERM), "%s does not end", name) }
}
