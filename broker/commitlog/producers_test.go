package commitlog

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// idempotent appends a batch of an idempotent producer as a client.
func idempotent(t testing.TB, l *Log, pid int64, epoch int16, seq int32, count int) (AppendInfo, error) {
	t.Helper()
	b := batchSpec{count: count, size: 5, ts: 1000, pid: pid, epoch: epoch, seq: seq}.build(t)
	return l.AppendAsLeader(b, 0, AppendOptions{RequireV2: true})
}

// restarts runs check on the log as it is, after a clean restart, and after the process was killed.
func restarts(t *testing.T, prepare func(l *Log), check func(t *testing.T, l *Log)) {
	for _, how := range []string{"running", "restarted", "killed"} {
		t.Run(how, func(t *testing.T) {
			fs, clk := vfs.NewCrashFS(), newClock()
			m := openManager(t, fs, smallConfig(), clk, "/data")
			prepare(m.log())
			switch how {
			case "restarted":
				require.NoError(t, m.Close())
				m = openManager(t, fs, smallConfig(), clk, "/data")
			case "killed":
				m = openManager(t, fs.Image(fs.Ops(), vfs.Everything, 1), smallConfig(), clk, "/data")
			}
			check(t, m.log())
		})
	}
}

func TestBR004RepeatedBatchesAreAnsweredWithTheOffsetsTheyGotFirst(t *testing.T) {
	restarts(t, func(l *Log) {
		for seq := range int32(6) {
			info, err := idempotent(t, l, 7, 0, seq, 1)
			require.NoError(t, err)
			require.EqualValues(t, seq, info.FirstOffset)
		}
	}, func(t *testing.T, l *Log) {
		for seq := int32(1); seq < 6; seq++ {
			info, err := idempotent(t, l, 7, 0, seq, 1)
			require.NoError(t, err)
			require.True(t, info.Duplicate)
			require.EqualValues(t, seq, info.FirstOffset)
			require.EqualValues(t, seq, info.LastOffset)
		}
		require.EqualValues(t, 6, l.EndOffset())
		_, err := idempotent(t, l, 7, 0, 0, 1)
		require.ErrorIs(t, err, kerr.OutOfOrderSequenceNumber, "older than what is remembered")
		_, err = idempotent(t, l, 7, 0, 5, 2)
		require.ErrorIs(t, err, kerr.OutOfOrderSequenceNumber, "the same first sequence, another count")
		require.EqualValues(t, 6, l.EndOffset())
		info, err := idempotent(t, l, 7, 0, 6, 1)
		require.NoError(t, err)
		require.EqualValues(t, 6, info.FirstOffset)
	})
}

func TestBR043SequencesWrap(t *testing.T) {
	const last = 1<<31 - 1
	restarts(t, func(l *Log) {
		_, err := idempotent(t, l, 7, 0, last-2, 5)
		require.NoError(t, err)
		require.EqualValues(t, 1, l.ProducerStates()[0].LastSequence)
		c := l.Config()
		c.MaxMessageBytes = 10
		l.SetConfig(c)
		_, err = idempotent(t, l, 7, 0, 2, 1)
		require.ErrorIs(t, err, kerr.MessageTooLarge)
		l.SetConfig(smallConfig())
		require.EqualValues(t, 1, l.ProducerStates()[0].LastSequence, "a refused batch leaves no trace")
	}, func(t *testing.T, l *Log) {
		info, err := idempotent(t, l, 7, 0, last-2, 5)
		require.NoError(t, err)
		require.True(t, info.Duplicate)
		require.EqualValues(t, 0, info.FirstOffset)
		_, err = idempotent(t, l, 7, 0, 3, 1)
		require.ErrorIs(t, err, kerr.OutOfOrderSequenceNumber)
		info, err = idempotent(t, l, 7, 0, 2, 1)
		require.NoError(t, err)
		require.EqualValues(t, 5, info.FirstOffset)
	})
}

func TestBR010AnExpiredProducerGoesOnWithAnySequence(t *testing.T) {
	fs, clk := vfs.NewCrashFS(), newClock()
	cfg := ManagerConfig{FS: fs, Dirs: []string{"/data"}, Default: smallConfig(), ProducerIDExpiration: 10 * time.Second}
	m := openWith(t, cfg, clk)
	l := m.log()
	ts := clk.at.UnixMilli()
	send := func(seq int32) error {
		_, err := l.AppendAsLeader(batchSpec{ts: ts, pid: 7, seq: seq}.build(t), 0, AppendOptions{})
		return err
	}
	require.NoError(t, send(0))
	require.NoError(t, send(1))
	clk.advance(11 * time.Second)
	m.expireProducers(clk.at)
	require.Empty(t, l.ProducerStates())
	require.NoError(t, send(2))
	require.NoError(t, m.Close())
	clk.advance(time.Hour)
	m = openWith(t, cfg, clk)
	l = m.log()
	require.Empty(t, l.ProducerStates(), "a snapshot's producers expire too")
	require.NoError(t, send(3))
	require.EqualValues(t, 4, l.EndOffset())
	m.ExpireProducerIDs(time.Second) // as a dynamic setting does it
	clk.advance(2 * time.Second)
	m.expireProducers(clk.at)
	require.Empty(t, l.ProducerStates())
}

func TestAnOlderProducerEpochIsFencedAndANewOneBeginsAtZero(t *testing.T) {
	l := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/data").log()
	_, err := idempotent(t, l, 7, 3, 0, 1)
	require.NoError(t, err)
	_, err = idempotent(t, l, 7, 2, 1, 1)
	require.ErrorIs(t, err, kerr.InvalidProducerEpoch)
	_, err = idempotent(t, l, 7, 4, 1, 1)
	require.ErrorIs(t, err, kerr.OutOfOrderSequenceNumber)
	_, err = idempotent(t, l, 7, 4, 0, 1)
	require.NoError(t, err)
}

func TestAFailedAppendChangesNoProducerState(t *testing.T) {
	fs := vfs.NewCrashFS()
	l := openManager(t, fs, smallConfig(), newClock(), "/data").log()
	_, err := idempotent(t, l, 7, 0, 0, 1)
	require.NoError(t, err)
	before := l.ProducerStates()
	fs.Inject(vfs.FailAt(fs.Ops(), errors.New("broken")))
	_, err = idempotent(t, l, 7, 0, 1, 1)
	require.ErrorIs(t, err, kerr.KafkaStorageError)
	require.Equal(t, before, l.ProducerStates())
	require.EqualValues(t, 1, l.EndOffset())
}

func transactional(t testing.TB, l *Log, pid int64, seq int32) {
	t.Helper()
	_, err := l.AppendAsLeader(batchSpec{size: 5, ts: 1, pid: pid, seq: seq, txn: true}.build(t), 0, AppendOptions{})
	require.NoError(t, err)
}

func endTxn(t testing.TB, l *Log, pid int64, typ record.ControlType, coordinatorEpoch int32) error {
	t.Helper()
	b := record.NewEndTxnBatch(record.EndTxnMarker{Type: typ, CoordinatorEpoch: coordinatorEpoch}, pid, 0, 2)
	_, err := l.AppendAsLeader(b, 0, AppendOptions{Origin: Coordinator})
	return err
}

func TestTheLastStableOffsetWaitsForTransactionsAndForTheirMarkersToBeCommitted(t *testing.T) {
	restarts(t, func(l *Log) {
		produce(t, l, batchSpec{ts: 1}) // 0
		transactional(t, l, 1, 0)       // 1
		transactional(t, l, 2, 0)       // 2
		require.NoError(t, endTxn(t, l, 2, record.Abort, 0))
		produce(t, l, batchSpec{ts: 1}) // 4
	}, func(t *testing.T, l *Log) {
		l.SetHighWatermark(5)
		require.EqualValues(t, 1, l.LastStableOffset())
		require.True(t, isOpen(l, 1))
		require.NoError(t, endTxn(t, l, 1, record.Commit, 0)) // 5
		require.EqualValues(t, 1, l.LastStableOffset(), "the marker is not committed")
		l.SetHighWatermark(6)
		require.EqualValues(t, 6, l.LastStableOffset())
		require.Nil(t, l.unstable.Load())
		aborted, err := abortedNow(l, 0, 6)
		require.NoError(t, err)
		require.Equal(t, []AbortedTxn{{2, 2}}, aborted)
		aborted, err = abortedNow(l, 4, 6)
		require.NoError(t, err)
		require.Empty(t, aborted)
	})
}

// A follower gets many batches at once. What begins behind a marker was not open when that was written: an index that counts it ends a search before the aborted transactions in between.
func TestAFollowerListsEveryAbortedTransactionOfOneFetch(t *testing.T) {
	leader := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/data").log()
	for seq := range int32(2) {
		transactional(t, leader, 1, seq) // 0, 2
		require.NoError(t, endTxn(t, leader, 1, record.Abort, 0))
	}
	transactional(t, leader, 2, 0) // 4
	r, err := leader.Read(0, ReadOptions{MaxBytes: 1 << 20, UpTo: leader.EndOffset()})
	require.NoError(t, err)
	fetched, err := r.Range.ReadAll()
	require.NoError(t, err)
	r.Range.Release()

	follower := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/data").log()
	_, err = follower.AppendAsFollower(fetched)
	require.NoError(t, err)
	for _, l := range []*Log{leader, follower} {
		aborted, err := abortedNow(l, 2, 4)
		require.NoError(t, err)
		require.Equal(t, []AbortedTxn{{1, 2}}, aborted)
		list, err := l.active().abortedList()
		require.NoError(t, err)
		require.Equal(t, []abortedTx{{1, 0, 1, 2}, {1, 2, 3, 4}}, list)
	}
	// So Apache Kafka's follower has it on its disk.
	theirs := []abortedTx{{1, 0, 1, 4}, {1, 2, 3, 4}}
	follower.active().aborted.Store(&theirs)
	aborted, err := abortedNow(follower, 2, 4)
	require.NoError(t, err)
	require.Equal(t, []AbortedTxn{{1, 2}}, aborted)
}

func TestAMarkerOfAnOlderCoordinatorIsFenced(t *testing.T) {
	l := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/data").log()
	transactional(t, l, 1, 0)
	require.NoError(t, endTxn(t, l, 1, record.Commit, 5))
	require.ErrorIs(t, endTxn(t, l, 1, record.Commit, 4), kerr.TransactionCoordinatorFenced)
	require.NoError(t, endTxn(t, l, 1, record.Commit, 5))
}

func TestTheFirstWriteOfATransactionNeedsItsOwnVerification(t *testing.T) {
	l := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/data").log()
	write := func(seq int32, guard *VerificationGuard) error {
		b := batchSpec{size: 5, ts: 1, pid: 1, seq: seq, txn: true}.build(t)
		_, err := l.AppendAsLeader(b, 0, AppendOptions{Verification: guard, RequireVerification: true})
		return err
	}
	require.ErrorIs(t, write(0, nil), kerr.InvalidTxnState)
	stale := l.VerifyTransaction(1, 0, 0)
	require.NotNil(t, stale)
	require.Same(t, stale, l.VerifyTransaction(1, 0, 0))
	require.NoError(t, endTxn(t, l, 1, record.Abort, 0), "the marker of a delayed transaction")
	require.ErrorIs(t, write(0, stale), kerr.InvalidTxnState, "a guard from before the marker")
	guard := l.VerifyTransaction(1, 0, 0)
	require.NoError(t, write(0, guard))
	require.Nil(t, l.VerifyTransaction(1, 1, 0))
	require.NoError(t, write(1, nil))
}

func TestWhatWasVerifiedInALaterEpochHoldsBackSequencesOfAnEarlierOne(t *testing.T) {
	l := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/data").log()
	l.VerifyTransaction(1, 0, 1)
	guard := l.VerifyTransaction(1, 1, 0)
	b := batchSpec{size: 5, ts: 1, pid: 1, seq: 1, txn: true}.build(t)
	_, err := l.AppendAsLeader(b, 0, AppendOptions{Verification: guard, RequireVerification: true})
	require.ErrorIs(t, err, kerr.OutOfOrderSequenceNumber)
}

func TestH10TruncationInsideATransactionLeavesTheStateOfAReplay(t *testing.T) {
	l := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/data").log()
	transactional(t, l, 1, 0)
	transactional(t, l, 1, 1)
	require.NoError(t, endTxn(t, l, 1, record.Abort, 0))
	transactional(t, l, 1, 2)
	require.NoError(t, l.TruncateTo(2))
	require.NotNil(t, l.unstable.Load())
	require.Zero(t, l.unstable.Load().Offset)
	aborted, err := abortedNow(l, 0, 2)
	require.NoError(t, err)
	require.Empty(t, aborted)
	require.EqualValues(t, 1, l.ProducerStates()[0].LastSequence)
	require.NoError(t, l.TruncateTo(0))
	require.Nil(t, l.unstable.Load())
	require.Empty(t, l.ProducerStates())
	_, err = idempotent(t, l, 1, 0, 0, 1)
	require.NoError(t, err)
}
