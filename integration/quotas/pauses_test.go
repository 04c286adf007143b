package quotas

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"barnabas/integration/cluster"
)

// set sets or removes a limit of the client "limited".
func set(ctx context.Context, t *testing.T, admin *kadm.Client, key string, value float64, remove bool) {
	t.Helper()
	altered, err := admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: kadm.StringPtr("limited")}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: key, Value: value, Remove: remove}},
	}})
	require.NoError(t, err)
	for _, a := range altered {
		require.NoError(t, a.Err)
	}
}

// line is a connection that waits for nothing on its own.
type line struct {
	net.Conn
	t *testing.T
}

func open(t *testing.T, c *cluster.Cluster) line {
	t.Helper()
	conn, err := net.DialTimeout("tcp", c.Seeds()[0], 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(2*most)))
	return line{conn, t}
}

// ask asks for the versions, and returns what pause the answer tells of.
func (l line) ask() time.Duration {
	l.t.Helper()
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = 3, "test", "1"
	_, err := l.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("limited")).AppendRequest(nil, req, 7))
	require.NoError(l.t, err)
	size := make([]byte, 4)
	_, err = io.ReadFull(l, size)
	require.NoError(l.t, err)
	answer := make([]byte, binary.BigEndian.Uint32(size))
	_, err = io.ReadFull(l, answer)
	require.NoError(l.t, err)
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.Version = 3
	require.NoError(l.t, resp.ReadFrom(answer[4:]))
	return time.Duration(resp.ThrottleMillis) * time.Millisecond
}

// requestTime: a client that may use next to no time is answered, told to pause for a window, and not read from meanwhile, whatever it
// asks for.
func requestTime(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	free, told := dial(t, c, "free")
	admin := kadm.NewClient(free)
	_, err := admin.CreateTopic(ctx, 1, 1, nil, "timed")
	require.NoError(t, err)
	require.NoError(t, free.ProduceSync(ctx, &kgo.Record{Topic: "timed", Value: []byte("x")}).FirstErr())
	set(ctx, t, admin, "request_percentage", 0.000001, false) // ten nanoseconds a second: no question is answered in less

	l := open(t, c)
	began, pause := time.Now(), l.ask()
	for deadline := began.Add(most); pause == 0; { // brokers learn of it from ZooKeeper
		require.True(t, time.Now().Before(deadline), "the limit holds")
		began, pause = time.Now(), l.ask()
	}
	assert.Equal(t, time.Second, pause, "a window at most")
	pause = l.ask()
	// Both questions are in it, since the test itself may be held up between the answer and the next.
	assert.GreaterOrEqual(t, time.Since(began), 990*time.Millisecond, "nothing was read while the client was to pause")
	assert.Equal(t, time.Second, pause)

	limited, limitedTold := dial(t, c, "limited", kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"timed": {0: kgo.NewOffset().AtStart()}}))
	before := limitedTold.told.Load()
	require.NoError(t, limited.ProduceSync(ctx, &kgo.Record{Topic: "timed", Value: []byte("y")}).FirstErr())
	assert.Greater(t, limitedTold.told.Load(), before, "the producer was told")
	assert.Zero(t, told.told.Load(), "who has no limit does not pause")

	set(ctx, t, admin, "request_percentage", 0, true)
	for deadline := time.Now().Add(most); pause > 0; pause = l.ask() {
		require.True(t, time.Now().Before(deadline), "the limit was lifted")
	}
	fetches := limited.PollFetches(ctx)
	require.NoError(t, fetches.Err())
	assert.Positive(t, fetches.NumRecords(), "what was withheld is given")
}

// mutations: half a partition at once and one in ten seconds: who took nine more is refused for a minute and a half, and a version
// that does not know of that is told to pause. Each question has a connection of its own, as nothing is read for so long
// from one that was told.
func mutations(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	free, _ := dial(t, c, "free")
	set(ctx, t, kadm.NewClient(free), "controller_mutation_rate", 0.1, false)
	create := func(id, name string, partitions int32, validate bool, more ...kgo.Opt) (int16, time.Duration) {
		client, _ := dial(t, c, id, more...)
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Topics, req.ValidateOnly, req.TimeoutMillis = append(req.Topics, topic), validate, 10_000
		resp, err := req.RequestWith(ctx, client)
		require.NoError(t, err)
		return resp.Topics[0].ErrorCode, time.Duration(resp.ThrottleMillis) * time.Millisecond
	}
	remove := func(name string) (int16, time.Duration) {
		client, _ := dial(t, c, "limited")
		topic := kmsg.NewDeleteTopicsRequestTopic()
		topic.Topic = &name
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Topics, req.TopicNames, req.TimeoutMillis = append(req.Topics, topic), []string{name}, 10_000
		resp, err := req.RequestWith(ctx, client)
		require.NoError(t, err)
		return resp.Topics[0].ErrorCode, time.Duration(resp.ThrottleMillis) * time.Millisecond
	}
	enlarge := func(name string, partitions int32) (int16, time.Duration) {
		client, _ := dial(t, c, "limited")
		topic := kmsg.NewCreatePartitionsRequestTopic()
		topic.Topic, topic.Count = name, partitions
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.Topics, req.TimeoutMillis = append(req.Topics, topic), 10_000
		resp, err := req.RequestWith(ctx, client)
		require.NoError(t, err)
		return resp.Topics[0].ErrorCode, time.Duration(resp.ThrottleMillis) * time.Millisecond
	}
	exceeded := kerr.ThrottlingQuotaExceeded.Code
	began := time.Now()
	for i, code := 0, int16(0); code != exceeded; i++ { // brokers learn of the limit from ZooKeeper
		require.True(t, time.Since(began) < most, "the limit holds")
		code, _ = create("limited", fmt.Sprint("probe-", i), 1, false)
	}
	began = time.Now()
	owed := func(told time.Duration, what string) {
		t.Helper()
		assert.Greater(t, told, 80*time.Second-time.Since(began), what)
		assert.LessOrEqual(t, told, 100*time.Second, what) // a slow probe may have waited until the bucket was just not in debt
	}
	code, told := create("limited", "old", 9, false, kgo.MaxVersions(kversion.V2_4_0()))
	assert.Zero(t, code, "a version that does not know of the limit is not refused")
	owed(told, "but paused")
	code, told = create("limited", "new", 1, false)
	assert.Equal(t, exceeded, code)
	owed(told, "create")
	code, told = enlarge("old", 10)
	assert.Equal(t, exceeded, code)
	owed(told, "enlarge")
	code, told = remove("old")
	assert.Equal(t, exceeded, code)
	owed(told, "delete")
	code, told = create("limited", "old", 1, false)
	assert.Equal(t, kerr.TopicAlreadyExists.Code, code, "what fails anyway is not counted")
	assert.Zero(t, told)
	code, told = create("limited", "checked", 1, true)
	assert.Zero(t, code, "nor is what is only checked")
	assert.Zero(t, told)
	code, told = create("free", "free", 2, false)
	assert.Zero(t, code)
	assert.Zero(t, told)
}
