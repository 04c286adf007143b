package zkstate_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "barnabas/zkstate"
)

func registrationAnswersTheBrokerEpoch(t *testing.T, addr string) {
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	require.NoError(t, c.MakePersistentPaths(ctx))
	stat, err := c.RegisterEphemeral(ctx, BrokerIDPath(1), []byte("one"))
	require.NoError(t, err)
	id, _ := c.Session()
	assert.Equal(t, id, stat.EphemeralOwner)
	again, err := c.RegisterEphemeral(ctx, BrokerIDPath(1), []byte("one"))
	require.NoError(t, err)
	assert.Equal(t, stat.Czxid, again.Czxid, "our own node is no obstacle")
}

func registrationWhoseAnswerWasLostSucceeds(t *testing.T, addr string) {
	p := newProxy(t, addr)
	c, other, ctx := connect(t, p.addr(), nil), connect(t, addr, nil), within(t, time.Minute)
	require.NoError(t, other.MakePersistentPaths(ctx))
	var stat Stat
	var err error
	p.loseAnswerTo(t, BrokerIDPath(1), func() bool { _, err := other.One(ctx, Exists(BrokerIDPath(1))); return err == nil },
		func() { stat, err = c.RegisterEphemeral(ctx, BrokerIDPath(1), []byte("one")) })
	require.NoError(t, err)
	id, _ := c.Session()
	assert.Equal(t, id, stat.EphemeralOwner)
}

func theNodeOfAnotherLiveSessionIsNotTakenAndTheErrorNamesIt(t *testing.T, addr string) {
	ctx := within(t, time.Minute)
	one := connect(t, addr, nil)
	require.NoError(t, one.MakePersistentPaths(ctx))
	_, err := one.RegisterEphemeral(ctx, BrokerIDPath(1), []byte("one"))
	require.NoError(t, err)
	two := connect(t, addr, func(c *Config) { c.SessionTimeout = shortSession })
	_, err = two.RegisterEphemeral(ctx, BrokerIDPath(1), []byte("two"))
	var held *HeldError
	require.ErrorAs(t, err, &held)
	var known *HeldError
	require.ErrorAs(t, two.AwaitUnheld(ctx, BrokerIDPath(1)), &known)
	require.Equal(t, held, known)
	require.NoError(t, two.AwaitUnheld(ctx, BrokerIDPath(2)), "nobody has it")
	require.NoError(t, one.AwaitUnheld(ctx, BrokerIDPath(1)), "it is its own")
	id, _ := one.Session()
	assert.Equal(t, HeldError{Path: BrokerIDPath(1), Owner: id, Data: []byte("one")}, *held)
	r, err := one.One(ctx, Get(BrokerIDPath(1)))
	require.NoError(t, err)
	assert.Equal(t, "one", string(r.Data))
}

func theNodeOfADeadSessionIsWaitedOut(t *testing.T, addr string) {
	ctx := within(t, time.Minute)
	p := newProxy(t, addr)
	killed := connect(t, p.addr(), func(c *Config) { c.SessionTimeout = shortSession })
	require.NoError(t, killed.MakePersistentPaths(ctx))
	_, err := killed.RegisterEphemeral(ctx, BrokerIDPath(1), []byte("old"))
	require.NoError(t, err)
	p.refuse() // as kill -9 does, without a goodbye
	restarted := connect(t, addr, nil)
	require.NoError(t, restarted.AwaitUnheld(ctx, BrokerIDPath(1)))
	_, err = restarted.One(ctx, Exists(BrokerIDPath(1)))
	require.ErrorIs(t, err, ErrNoNode)
	stat, err := restarted.RegisterEphemeral(ctx, BrokerIDPath(1), []byte("new"))
	require.NoError(t, err)
	id, _ := restarted.Session()
	assert.Equal(t, id, stat.EphemeralOwner)
}

func aPersistentNodeInTheWayIsAnErrorAtOnce(t *testing.T, addr string) {
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	require.NoError(t, c.CreateRecursive(ctx, BrokerIDPath(1), []byte("x")))
	_, err := c.RegisterEphemeral(ctx, BrokerIDPath(1), nil)
	var held *HeldError
	require.ErrorAs(t, err, &held)
	assert.Zero(t, held.Owner)
	require.ErrorAs(t, c.AwaitUnheld(ctx, BrokerIDPath(1)), &held)
}

func h23ADeposedControllerCanChangeNothing(t *testing.T, addr string) {
	ctx := within(t, time.Minute)
	one, two := connect(t, addr, nil), connect(t, addr, nil)
	_, err := one.One(ctx, Create(ControllerEpochPath, EncodeControllerEpoch(1)))
	require.NoError(t, err)
	_, generation := one.Session()
	fenced := one.FenceIn(0, generation)
	rs, err := fenced.Do(ctx, []Op{Create("/t", []byte("1")), Set("/t", []byte("2"), 0), Get("/t"), Set("/t", nil, 7)})
	require.NoError(t, err)
	assert.Equal(t, []error{nil, nil, nil, ErrBadVersion}, []error{rs[0].Err, rs[1].Err, rs[2].Err, rs[3].Err})
	assert.Equal(t, int32(1), rs[1].Stat.Version)
	assert.Equal(t, "2", string(rs[2].Data))
	rs, err = fenced.Multi(ctx, []Op{CreateSequential("/t/n-", nil), Delete("/t", AnyVersion)})
	require.ErrorIs(t, err, ErrNotEmpty)
	assert.Equal(t, []error{ErrRolledBack, ErrNotEmpty}, []error{rs[0].Err, rs[1].Err})

	_, err = two.One(ctx, Set(ControllerEpochPath, EncodeControllerEpoch(2), 0)) // as the next controller does
	require.NoError(t, err)
	rs, err = fenced.Do(ctx, []Op{Set("/t", []byte("zombie"), AnyVersion), Create("/z", nil), Delete("/t", AnyVersion)})
	require.NoError(t, err)
	for _, r := range rs {
		assert.ErrorIs(t, r.Err, ErrFenced)
	}
	_, err = fenced.Multi(ctx, []Op{Create("/z", nil)})
	assert.ErrorIs(t, err, ErrFenced)
	r, err := two.One(ctx, Get("/t"))
	require.NoError(t, err)
	assert.Equal(t, "2", string(r.Data))
	_, err = one.FenceIn(1, generation+1).Do(ctx, []Op{Create("/z", nil)})
	assert.ErrorIs(t, err, ErrSessionExpired, "a fence belongs to one session")
}

func aBatchThatIsRefusedIsTriedOneByOne(t *testing.T, addr string) {
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	_, err := c.One(ctx, Create(ControllerEpochPath, EncodeControllerEpoch(1)))
	require.NoError(t, err)
	_, generation := c.Session()
	fenced := c.FenceIn(0, generation)
	ops := []Op{Create("/a", nil), Create("/a/b", nil), Create("/a", nil), Set("/a/b", []byte("x"), 0), Set("/a/b", nil, 7), Delete("/none", AnyVersion), Create("/bad/", nil), Delete("/a/b", 1)}
	rs, err := fenced.Do(ctx, ops)
	require.NoError(t, err)
	want := []error{nil, nil, ErrNodeExists, nil, ErrBadVersion, ErrNoNode, ErrBadArguments, nil}
	for i, r := range rs {
		assert.ErrorIs(t, r.Err, want[i], "%v", ops[i])
	}
	assert.Equal(t, int32(1), rs[3].Stat.Version)
}

func aBlockOfProducerIDsWhoseAnswerWasLostIsNotWasted(t *testing.T, addr string) {
	p := newProxy(t, addr)
	c, other, ctx := connect(t, p.addr(), nil), connect(t, addr, nil), within(t, time.Minute)
	require.NoError(t, other.MakePersistentPaths(ctx))
	var b ProducerIDBlock
	var err error
	p.loseAnswerTo(t, `"block_start":"0"`, func() bool {
		r, err := other.One(ctx, Get(ProducerIDBlockPath))
		return err == nil && len(r.Data) > 0
	}, func() { b, err = c.AllocateProducerIDs(ctx, 3) })
	require.NoError(t, err)
	assert.Equal(t, ProducerIDBlock{Broker: 3, First: 0, Last: 999}, b)
}

func h52BlocksOfProducerIDsAreDisjointWhateverIsLost(t *testing.T, addr string) {
	ctx := within(t, 60*time.Second)
	p := newProxy(t, addr)
	setup := connect(t, addr, nil)
	require.NoError(t, setup.MakePersistentPaths(ctx))
	var mu sync.Mutex
	given := map[int64]int32{}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for broker := range int32(4) {
		c := connect(t, p.addr(), nil)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 25 {
				b, err := c.AllocateProducerIDs(ctx, broker)
				if errors.Is(err, context.DeadlineExceeded) || !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				_, twice := given[b.First]
				assert.False(t, twice, "block %v given twice", b)
				given[b.First] = broker
				assert.Equal(t, b.First+ProducerIDBlockSize-1, b.Last)
				assert.Equal(t, broker, b.Broker)
				mu.Unlock()
			}
		}()
	}
	cutter := make(chan struct{})
	go func() {
		defer close(cutter)
		for tick := time.NewTicker(30 * time.Millisecond); ; {
			select {
			case <-tick.C:
				p.cut()
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	time.AfterFunc(600*time.Millisecond, func() { close(stop) })
	wg.Wait()
	<-cutter
	assert.Len(t, given, 100)
	r, err := setup.One(ctx, Get(ProducerIDBlockPath))
	require.NoError(t, err)
	last, err := DecodeProducerIDBlock(r.Data)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, last.Last, int64(99_999))
}

func producerIDsEndWithAnErrorInsteadOfWrappingAround(t *testing.T, addr string) {
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	_, err := c.One(ctx, Create(ProducerIDBlockPath, ProducerIDBlock{Broker: 1, First: 1, Last: 1<<63 - 1000}.Encode()))
	require.NoError(t, err)
	_, err = c.AllocateProducerIDs(ctx, 1)
	require.ErrorIs(t, err, ErrProducerIDsExhausted)
}

func aBrokerMakesTheDirectoriesOfAFreshTree(t *testing.T, addr string) {
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	id, err := c.JoinCluster(ctx, "PjVw6mQiSvSXLd7Vbyj7bA")
	require.NoError(t, err)
	assert.Equal(t, "PjVw6mQiSvSXLd7Vbyj7bA", id)
	_, err = c.Do(ctx, []Op{Delete("/config/ips", AnyVersion), Delete("/admin/delete_topics", AnyVersion), Delete("/admin", AnyVersion)})
	require.NoError(t, err)
	id, err = c.JoinCluster(ctx, "another")
	require.NoError(t, err, "what is missing is made, as after an upgrade")
	assert.Equal(t, "PjVw6mQiSvSXLd7Vbyj7bA", id)
	require.NoError(t, c.MakePersistentPaths(ctx), "once more is no error")
	// The paths of a fresh 3.9.1 cluster, as far as they are not below a broker.
	for _, path := range []string{"/admin/delete_topics", "/brokers/ids", "/brokers/seqid", "/brokers/topics", "/config/brokers", "/config/changes",
		"/config/clients", "/config/ips", "/config/topics", "/config/users", "/consumers", "/isr_change_notification",
		"/latest_producer_id_block", "/log_dir_event_notification"} {
		r, err := c.One(ctx, Get(path))
		require.NoError(t, err, path)
		assert.Nil(t, r.Data, path)
	}
	n, err := c.NextBrokerSequence(ctx)
	require.NoError(t, err)
	assert.Equal(t, int32(1), n)
}

func aConfigurationIsWrittenBeforeItsNotification(t *testing.T, addr string) {
	c, ctx := connect(t, addr, nil), within(t, time.Minute)
	require.NoError(t, c.MakePersistentPaths(ctx))
	name := UserClientEntity(SanitizeName("al ice"), SanitizeName("app*"))
	require.NoError(t, c.SetEntityConfig(ctx, UserEntity, name, EntityConfig{"producer_byte_rate": "10"}))
	require.NoError(t, c.SetEntityConfig(ctx, UserEntity, name, EntityConfig{"producer_byte_rate": "20"}))
	rs, err := c.Do(ctx, []Op{Get("/config/users/al%20ice/clients/app%2A"), Get("/config/changes/config_change_0000000001"), Get("/config/users/al%20ice")})
	require.NoError(t, err)
	assert.Equal(t, `{"version":1,"config":{"producer_byte_rate":"20"}}`, string(rs[0].Data))
	assert.Equal(t, `{"version":2,"entity_path":"users/al%20ice/clients/app%2A"}`, string(rs[1].Data))
	assert.Nil(t, rs[2].Data)
	config, version, err := c.EntityConfig(ctx, UserEntity, name)
	require.NoError(t, err)
	assert.Equal(t, EntityConfig{"producer_byte_rate": "20"}, config)
	assert.Equal(t, int32(1), version)
}

func brokersThatStartTogetherAgreeOnTheCluster(t *testing.T, addr string) {
	const brokers = 4
	ctx := within(t, time.Minute)
	ids := make([]string, brokers)
	errs := make([]error, brokers)
	var starts sync.WaitGroup
	for i := range brokers {
		c := connect(t, addr, nil)
		starts.Go(func() { ids[i], errs[i] = c.JoinCluster(ctx, "cluster-"+strconv.Itoa(i)) })
	}
	starts.Wait()
	for i := range brokers {
		require.NoError(t, errs[i])
		assert.Equal(t, ids[0], ids[i])
	}
}
