package commitlog

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/vfs"
)

// renameFS calls before for each file that is to get another name.
type renameFS struct {
	vfs.FS
	before func(from string)
}

func (r *renameFS) Rename(from, to string) error {
	if r.before != nil {
		r.before(from)
	}
	return r.FS.Rename(from, to)
}

// Files are written under a name of their own and renamed. A directory that gets its last name in between must not be taken for a disk that fails: the broker
// would lose every replica on it because one was moved away.
func TestALogThatIsDeletedWhileAFileOfItIsWrittenTakesNoDirectoryOffline(t *testing.T) {
	for name, write := range map[string]func(o *opened, l *Log){
		"the epochs by the housekeeper": func(o *opened, _ *Log) { o.flushEpochs() },
		"the id of its topic":           func(_ *opened, l *Log) { _ = l.SetTopicID(TopicID{1}) },
	} {
		t.Run(name, func(t *testing.T) {
			disk, clock := &renameFS{FS: vfs.NewCrashFS()}, newClock()
			o := openManager(t, disk, smallConfig(), clock, "/data")
			l := o.log()
			produce(t, l, batchSpec{count: 1, size: 10})
			require.NoError(t, l.Flush())
			require.NoError(t, l.AssignEpochStart(7, l.EndOffset()))

			deleted := make(chan error, 1)
			disk.before = func(from string) {
				if filepath.Ext(from) != temporarySuffix {
					return
				}
				disk.before = nil
				go func() { deleted <- o.Delete(tp0) }()
				select {
				case err := <-deleted: // it did not wait for the file
					deleted <- err
				case <-time.After(50 * time.Millisecond): // it waits
				}
			}
			write(o, l)
			require.NoError(t, <-deleted)
			for _, d := range o.Dirs() {
				require.NoError(t, d.Err)
			}
			require.NoError(t, o.log().Err(), "a log of its name is made anew")
		})
	}
}

// Whatever the clock asks for goes on while logs are made, written, cut, moved to the other directory and deleted. None of it is the fault of a disk.
func TestLogsComeAndGoUnderTheHousekeeper(t *testing.T) {
	const works = 4
	c := smallConfig()
	c.SegmentBytes, c.FileDeleteDelayMs, c.CleanupCompact, c.MinCleanableDirtyRatio = 4096, 0, true, 0.01
	o := openWith(t, ManagerConfig{Dirs: []string{t.TempDir(), t.TempDir()}, FS: vfs.OS, Default: c, Cleaner: CleanerConfig{Threads: 1, DedupeBytes: 1 << 20, Backoff: time.Millisecond}}, newClock())
	done := make(chan struct{})
	var others, owners sync.WaitGroup
	jobs := o.jobs(time.Now())
	others.Go(func() {
		for {
			for _, j := range jobs {
				j.run(o.clock.now().Add(time.Hour))
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for owner := range works {
		owners.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(owner)))
			tp := TopicPartition{"topic", int32(owner)}
			for life := range 40 {
				if !comesAndGoes(t, o, tp, rng) {
					t.Errorf("in life %d of %s", life, tp)
					return
				}
			}
		})
	}
	owners.Wait()
	close(done)
	others.Wait()
	for _, d := range o.Dirs() {
		assert.NoError(t, d.Err)
	}
}

// comesAndGoes is one life of a log.
func comesAndGoes(t *testing.T, o *opened, tp TopicPartition, rng *rand.Rand) bool {
	l, err := o.GetOrCreate(tp, TopicID{}, false)
	for epoch := int32(0); err == nil && rng.IntN(8) != 0; epoch++ {
		switch rng.IntN(6) {
		case 0:
			err = l.TruncateTo(rng.Int64N(l.EndOffset() + 1))
		case 1:
			l.SetHighWatermark(l.EndOffset())
			_, err = l.AdvanceStartOffset(rng.Int64N(l.EndOffset()+1), "asked for")
			if errors.Is(err, kerr.OffsetOutOfRange) {
				err = nil
			}
		case 2:
			err = errors.Join(l.AssignEpochStart(epoch, l.EndOffset()), l.Flush())
		case 3:
			if _, err = o.GetOrCreate(tp, TopicID{}, true); err == nil {
				err = o.DeleteFuture(tp)
			}
		default:
			_, err = l.AppendAsLeader(batchSpec{count: 3, size: 500, ts: 1, keys: true}.build(t), epoch, AppendOptions{})
			l.SetHighWatermark(l.EndOffset())
		}
	}
	if err == nil {
		err = o.Delete(tp)
	}
	return assert.NoError(t, err)
}
