package fetcher

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// oneBroker is a broker with two log directories, leader of t-0 unless told otherwise.
type oneBroker struct {
	t        testing.TB
	fs       vfs.FS
	dirs     []string
	config   commitlog.Config
	throttle partition.Throttle
	logs     *commitlog.Manager
	replicas *partition.Manager
	movers   *Movers
	epoch    int32
	failed   chan string
}

func newOneBroker(t testing.TB, fs vfs.FS, dirs ...string) *oneBroker {
	b := &oneBroker{t: t, fs: fs, dirs: dirs, config: commitlog.DefaultConfig(), failed: make(chan string, 8)}
	b.config.SegmentBytes = 1 << 20
	b.config.FileDeleteDelayMs = 0
	b.open()
	t.Cleanup(b.close)
	return b
}

func (b *oneBroker) open() {
	l := logrus.New()
	l.SetOutput(io.Discard)
	log := logrus.NewEntry(l)
	var err error
	b.logs, err = commitlog.Open(commitlog.ManagerConfig{
		Dirs: b.dirs, FS: b.fs, Default: b.config, Now: time.Now, Log: log,
		OnDirFailure: func(dir string, _ error) {
			if b.replicas != nil {
				b.replicas.LogDirFailed(dir)
			}
			b.failed <- dir
		},
	})
	require.NoError(b.t, err)
	b.movers = NewMovers(MoversConfig{Threads: 2, MaxBytes: 32 << 10, Backoff: 5 * time.Millisecond, Throttle: &b.throttle, Log: log, Now: time.Now})
	b.replicas = partition.NewManager(partition.Config{
		BrokerID: 1, ReplicaLagTimeMax: time.Hour, Movers: b.movers, FS: b.fs, Log: log, Now: time.Now,
	}, b.logs, nobody{}, nobody{})
	b.replicas.SetAliveBrokers(map[int32]partition.BrokerInfo{1: {}, 2: {}})
}

func (b *oneBroker) close() {
	b.movers.Close()
	b.replicas.Close()
	_ = b.logs.Close()
}

// nobody is who a lone broker asks for ISR changes, and to fetch.
type nobody struct{}

func (nobody) ChangeISR(_ partition.ISRChange, done func(partition.ISRChanged, error)) {
	done(partition.ISRChanged{}, kerr.NotController)
}
func (nobody) Add([]partition.FetchFrom)         {}
func (nobody) Remove([]commitlog.TopicPartition) {}

func (b *oneBroker) order(leader int32, isNew bool) error {
	b.epoch++
	_, each := b.replicas.ApplyLeaderAndISR(partition.LeaderAndISR{ControllerID: 1, ControllerEpoch: 1, Version: 7, Partitions: []partition.LeaderAndISRPartition{{
		Topic: "t", TopicID: commitlog.TopicID{1}, Leader: leader, LeaderEpoch: b.epoch, ISR: []int32{leader}, Replicas: []int32{1, 2}[:1+leader/2],
		PartitionEpoch: b.epoch, ControllerEpoch: 1, IsNew: isNew,
	}}})
	return each[0].Err
}

func (b *oneBroker) ask(dir string) error {
	return b.replicas.AlterLogDirs([]partition.LogDirChange{{TP: tp0, Dir: dir}})[0].Err
}

// produce appends one batch and returns the offset it was acknowledged with.
func (b *oneBroker) produce(value string) int64 {
	build := record.NewBuilder(record.BuilderOptions{})
	build.Append(time.Now().UnixMilli(), nil, []byte(value))
	batch, err := build.Build()
	require.NoError(b.t, err)
	answer := make(chan partition.ProduceResult, 1)
	b.replicas.Produce(&partition.ProduceRequest{Acks: -1, Timeout: time.Minute, Version: 9, Partitions: []partition.ProducePartition{{Topic: "t", Records: batch}}},
		func(r []partition.ProduceResult) { answer <- r[0] })
	r := <-answer
	require.NoError(b.t, r.Err)
	return r.BaseOffset
}

func (b *oneBroker) values() []string {
	log := b.logs.Get(tp0)
	var values []string
	for at := log.StartOffset(); at < log.EndOffset(); {
		r, err := log.Read(at, commitlog.ReadOptions{MaxBytes: 1 << 20, MinOneBatch: true, UpTo: log.EndOffset()})
		require.NoError(b.t, err)
		data, err := r.Range.ReadAll()
		require.NoError(b.t, err)
		r.Range.Release()
		for len(data) > 0 {
			batch, rest, err := record.Next(data)
			require.NoError(b.t, err)
			for rec, err := range batch.Records(record.Limits{}) {
				require.NoError(b.t, err)
				values = append(values, string(rec.Value))
			}
			at, data = batch.NextOffset(), rest
		}
	}
	return values
}

func (b *oneBroker) moved(to string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.logs.Get(tp0).ParentDir() == to && b.movers.Moving() == 0 }, time.Minute, time.Millisecond)
}

// A replica is moved to and fro under a producer that never pauses and a consumer that waits for each record; leader epochs
// change meanwhile. Everything that was acknowledged is at its offset, once, and the old directory is empty.
func TestAReplicaIsMovedUnderLoad(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	b := newOneBroker(t, vfs.OS, dirs...)
	require.NoError(t, b.order(1, true))
	for i := range 400 {
		require.EqualValues(t, i, b.produce(fmt.Sprint(i)+strings.Repeat("x", 500)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var load sync.WaitGroup
	acked := int64(400)
	load.Go(func() {
		for ; ctx.Err() == nil; acked++ {
			if got := b.produce(fmt.Sprint(acked) + strings.Repeat("x", 500)); got != acked {
				t.Errorf("offset %d instead of %d", got, acked)
				return
			}
		}
	})
	consumed := int64(0)
	load.Go(func() {
		for ctx.Err() == nil {
			answer := make(chan partition.FetchResult, 1)
			b.replicas.Fetch(&partition.FetchRequest{ReplicaID: -1, Version: 12, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 20 * time.Millisecond, Partitions: []partition.FetchPartition{
				{Topic: "t", FetchOffset: consumed, MaxBytes: 1 << 20, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1},
			}}, func(r []partition.FetchResult) { answer <- r[0] })
			r := <-answer
			data, err := r.Records.ReadAll()
			if r.Err != nil || err != nil {
				t.Errorf("fetch at %d: %v, %v", consumed, r.Err, err)
				return
			}
			r.Records.Release()
			for len(data) > 0 {
				batch, rest, err := record.Next(data)
				if err != nil {
					break
				}
				consumed, data = batch.NextOffset(), rest
			}
		}
	})
	at := b.logs.Get(tp0).ParentDir()
	for round := range 6 {
		other := dirs[0]
		if other == at {
			other = dirs[1]
		}
		require.NoError(t, b.ask(other+"/"), "a slash more is the same directory")
		if round%2 == 1 {
			require.NoError(t, b.order(1, false))
		}
		b.moved(other)
		at = other
	}
	cancel()
	load.Wait()
	values := b.values()
	require.Len(t, values, int(acked))
	for i, v := range values {
		require.True(t, strings.HasPrefix(v, fmt.Sprint(i)+"x"), "offset %d", i)
	}
	t.Logf("%d records, %d consumed", acked, consumed)
	epoch, ok := b.logs.Get(tp0).LatestEpoch()
	require.True(t, ok)
	require.Equal(t, b.epoch, epoch)
	require.Eventually(t, func() bool { return len(partitionDirs(t, dirs)) == 1 }, time.Minute, 10*time.Millisecond)
}

func partitionDirs(t testing.TB, dirs []string) []string {
	var all []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			if e.IsDir() {
				all = append(all, filepath.Join(dir, e.Name()))
			}
		}
	}
	return all
}

// Moves wait for the rate; what is asked for meanwhile ends them, starts them anew or is remembered.
func TestAMoveIsEndedByAskingForTheDirectoryItComesFrom(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	b := newOneBroker(t, vfs.OS, dirs...)
	require.ErrorIs(t, b.ask(dirs[1]), kerr.UnknownTopicOrPartition)
	require.ErrorIs(t, b.ask("/nowhere"), kerr.LogDirNotFound)
	require.NoError(t, b.order(1, true))
	require.Equal(t, dirs[1], b.logs.Get(tp0).ParentDir(), "it was asked for before it was there")
	require.NoError(t, b.ask(dirs[1]))
	require.Nil(t, b.logs.GetFuture(tp0), "it is there")
	for i := range 100 {
		b.produce(fmt.Sprint(i) + strings.Repeat("x", 1000))
	}

	b.throttle.SetRate(time.Now(), 1000)
	require.NoError(t, b.ask(dirs[0]))
	future := b.logs.GetFuture(tp0)
	require.Equal(t, dirs[0], future.ParentDir())
	require.Regexp(t, `^t-0\.[0-9a-f]{32}-future$`, filepath.Base(future.Dir()))
	require.NoError(t, b.ask(dirs[0]))
	require.Same(t, future, b.logs.GetFuture(tp0), "asking again changes nothing")
	require.Eventually(t, func() bool { return future.EndOffset() > 0 }, time.Minute, time.Millisecond)
	described := b.replicas.LogDirs()[0].Partitions
	require.Len(t, described, 1)
	require.True(t, described[0].IsFuture)
	require.Equal(t, 100-future.EndOffset(), described[0].OffsetLag)
	require.Positive(t, described[0].OffsetLag)

	require.NoError(t, b.ask(dirs[2]))
	require.Equal(t, dirs[2], b.logs.GetFuture(tp0).ParentDir())
	require.NoError(t, b.ask(dirs[1]))
	require.Nil(t, b.logs.GetFuture(tp0))
	require.Zero(t, b.movers.Moving())

	require.NoError(t, b.ask(dirs[2]))
	b.close()
	b.open() // as after a restart
	require.NotNil(t, b.logs.GetFuture(tp0))
	require.NoError(t, b.order(2, false), "a follower's move goes on too")
	require.Equal(t, 1, b.movers.Moving())
	b.throttle.SetRate(time.Now(), 0)
	b.moved(dirs[2])
	require.Len(t, b.values(), 100)

	require.NoError(t, b.ask(dirs[0]))
	_, each := b.replicas.StopReplicas(partition.StopReplicas{ControllerID: 1, ControllerEpoch: 1, Partitions: []partition.StopReplica{{Topic: "t", LeaderEpoch: partition.EpochDuringDelete, Delete: true}}})
	require.NoError(t, each[0].Err)
	require.Nil(t, b.logs.Get(tp0))
	require.Nil(t, b.logs.GetFuture(tp0))
	require.Eventually(t, func() bool { return len(partitionDirs(t, dirs)) == 0 }, time.Minute, 10*time.Millisecond)
}

// The directory that a replica is moved to fails: the replica goes on where it is. The one that it comes from fails: it
// is offline.
func TestADirectoryFailsDuringAMove(t *testing.T) {
	for _, failing := range []string{"/to", "/from"} {
		t.Run(failing[1:], func(t *testing.T) {
			fs := vfs.NewCrashFS()
			b := newOneBroker(t, fs, "/from", "/to")
			require.ErrorIs(t, b.ask("/from"), kerr.UnknownTopicOrPartition)
			require.NoError(t, b.order(1, true))
			for i := range 50 {
				b.produce(fmt.Sprint(i) + strings.Repeat("x", 1000))
			}
			b.throttle.SetRate(time.Now(), 1)
			require.NoError(t, b.ask("/to"))
			fs.Inject(func(o vfs.Op) error {
				if strings.HasPrefix(o.Name, failing+"/") {
					return syscall.EIO
				}
				return nil
			})
			if failing == "/to" {
				b.throttle.SetRate(time.Now(), 0)
			} else {
				require.Error(t, b.logs.Get(tp0).SetTopicID(commitlog.TopicID{2}))
				require.Error(t, b.logs.Get(tp0).TruncateTo(3))
			}
			require.Equal(t, failing, <-b.failed)
			require.Eventually(t, func() bool { return b.movers.Moving() == 0 }, time.Minute, time.Millisecond)
			if failing == "/from" {
				require.Eventually(t, func() bool { return b.replicas.Counts().Offline == 1 }, time.Minute, time.Millisecond)
				require.ErrorIs(t, b.ask("/to"), kerr.KafkaStorageError)
				require.ErrorIs(t, b.ask("/from"), kerr.KafkaStorageError)
				return
			}
			require.Eventually(t, func() bool { return b.logs.GetFuture(tp0) == nil }, time.Minute, time.Millisecond)
			require.EqualValues(t, 50, b.produce("on"))
			require.ErrorIs(t, b.ask("/to"), kerr.KafkaStorageError)
		})
	}
}
