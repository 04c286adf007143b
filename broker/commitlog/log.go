package commitlog

import (
	"fmt"
	"path/filepath"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// Log is the log of one partition. Appends, truncations and rolls exclude one another; readers take no lock.
//
// Locks, in the order in which they are taken: flushing, mu, segment.mu, marks. mu is held while an append writes; no
// lock but flushing is held across an fsync, except when a log is emptied or closed.
//
// What readers look at is published in an order that keeps every glance consistent: bytes, then the segment's size,
// then the end; the first unstable offset before the append returns, hence before the high watermark can pass it.
type Log struct {
	tp     TopicPartition
	env    *environment
	parent *logDir
	place  place

	future  atomic.Bool
	topicID atomic.Pointer[TopicID]
	config  atomic.Pointer[Config]
	corrupt atomic.Pointer[CorruptionError] // recovery found that committed data is damaged
	closed  atomic.Bool

	segments atomic.Pointer[[]*segment] // never empty; replaced as a whole; the last one is appended to
	start    atomic.Int64
	end      atomic.Pointer[Position]
	high     atomic.Pointer[Position]
	unstable atomic.Pointer[Position] // nil: no transaction is open or waits for its marker to be committed
	cursor   atomic.Pointer[Position] // where the last reader that caught up will go on
	epochs   epochCache

	recovered Recovery
	// owed is what Recovery knows to have been committed, more than came back, until a leader or its follower goes on with
	// what there is. It stays in the checkpoint: another restart must not make it forgotten.
	owed          atomic.Int64
	recoveryPoint atomic.Int64
	lastFlush     atomic.Int64 // ms
	truncations   atomic.Int64 // so that a flush or a cleaning notices that the log was cut meanwhile
	cleaned       atomic.Int64 // everything below is compacted, as the checkpoint says; noOffset: it never was
	cleaning      cleaningState
	newNames      atomic.Bool // files were made whose names are not synced
	unsettled     atomic.Bool // the log was created and nothing of it is synced
	decided       atomic.Bool // transactions wait for the high watermark to pass their marker

	// marks guards moves of start, end (downwards) and high against one another.
	marks sync.Mutex

	flushing sync.Mutex

	mu struct {
		sync.Mutex
		producers producers
		snapshots []int64 // offsets of the snapshot files, in order
		unsynced  []int64 // those of them that are not synced
		warned    bool    // about timestamps in the future
	}
}

// environment is what all logs of a manager share.
type environment struct {
	fs           vfs.FS
	now          func() time.Time
	log          *logrus.Entry
	files        *openFiles
	limits       record.Limits
	expirationMs atomic.Int64                                   // producer.id.expiration.ms
	flushSoon    func(l *Log)                                   // flush sealed segments in the background
	removeLater  func(d *logDir, delayMs int64, paths []string) // delete files after a while
	lowered      func(l *Log) error                             // points fell: bring them to disk before anything is appended
}

func (e *environment) nowMs() int64 { return e.now().UnixMilli() }

// Recovery tells what opening a log after an unclean stop did to it.
type Recovery struct {
	Ran            bool
	Truncated      int64 // bytes cut off the end
	KnownCommitted int64 // everything below was committed or synced before the stop, as far as the checkpoints tell
	EndOffset      int64 // where the log ended afterwards
}

// LostCommitted tells that the log came back shorter than what it is known to have held (H20, dirty restart).
func (r Recovery) LostCommitted() bool { return r.Ran && r.EndOffset < r.KnownCommitted }

// Position is a place in a log: an offset and where its bytes begin. A Position whose SegmentBase is -1 knows the offset only.
type Position struct {
	Offset      int64
	SegmentBase int64 // base offset of the segment
	SegmentPos  int64 // byte position in it
}

func offsetOnly(offset int64) Position { return Position{Offset: offset, SegmentBase: -1} }

// BytesSince returns how many bytes lie between b and a; false when they are in different segments (or one is unknown).
func (a Position) BytesSince(b Position) (int64, bool) {
	if a.SegmentBase < 0 || a.SegmentBase != b.SegmentBase {
		return 0, false
	}
	return a.SegmentPos - b.SegmentPos, true
}

// Before tells that a lies in an older segment than b.
func (a Position) Before(b Position) bool { return a.SegmentBase < b.SegmentBase }

// TP returns the partition whose log this is.
func (l *Log) TP() TopicPartition { return l.tp }

// Dir returns the partition's directory.
func (l *Log) Dir() string { return *l.place.dir.Load() }

// ParentDir returns the log directory that the partition's directory is in.
func (l *Log) ParentDir() string { return l.parent.path }

// IsIn tells that the log is in a log directory, however its path is spelt.
func (l *Log) IsIn(dir string) bool { return l.parent.path == filepath.Clean(dir) }

// IsFuture tells that the log is to replace another one.
func (l *Log) IsFuture() bool { return l.future.Load() }

// TopicID returns the id in partition.metadata, zero when there is none.
func (l *Log) TopicID() TopicID {
	if p := l.topicID.Load(); p != nil {
		return *p
	}
	return TopicID{}
}

// SetTopicID writes partition.metadata for a log that has none. INCONSISTENT_TOPIC_ID when it has another id.
func (l *Log) SetTopicID(id TopicID) error {
	if err := l.Err(); err != nil {
		return err
	}
	if known := l.TopicID(); !known.IsZero() || id.IsZero() {
		if known == id {
			return nil
		}
		return fmt.Errorf("%w: %s has topic id %s, not %s", kerr.InconsistentTopicID, l.tp, known, id)
	}
	l.flushing.Lock() // the directory keeps its name
	defer l.flushing.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	if err := replaceFile(l.env.fs, l.Dir(), partitionMetadataFile, encodePartitionMetadata(id)); err != nil {
		return l.parent.fail(err)
	}
	l.topicID.Store(&id)
	return nil
}

// Config returns the settings in force.
func (l *Log) Config() Config { return *l.config.Load() }

// Limits bound what reading a batch of the log may cost.
func (l *Log) Limits() record.Limits { return l.env.limits }

// SetConfig puts new settings in force.
func (l *Log) SetConfig(c Config) { l.config.Store(&c) }

// Err returns why the log cannot be used: KAFKA_STORAGE_ERROR after its directory failed or when recovery found
// corruption; nil while it works.
func (l *Log) Err() error {
	if err := l.parent.err(); err != nil {
		return err
	}
	if c := l.corrupt.Load(); c != nil {
		return c
	}
	if l.closed.Load() {
		return fmt.Errorf("%w: the log of %s is closed", kerr.KafkaStorageError, l.tp)
	}
	return nil
}

// Recovery tells what was done when the log was opened.
func (l *Log) Recovery() Recovery { return l.recovered }

// StartOffset is the first offset that may be read.
func (l *Log) StartOffset() int64 { return l.start.Load() }

// EndOffset is the offset that the next record will get.
func (l *Log) EndOffset() int64 { return l.end.Load().Offset }

// EndPosition is the place of EndOffset.
func (l *Log) EndPosition() Position { return *l.end.Load() }

// HighWatermark is the offset below which everything is committed, as far as this replica knows.
func (l *Log) HighWatermark() int64 { return l.high.Load().Offset }

// HighWatermarkPosition is HighWatermark with its place, found by looking it up when it is not known.
func (l *Log) HighWatermarkPosition() Position { return l.placeOf(&l.high) }

// checkpointHigh is the high watermark as it is written down.
func (l *Log) checkpointHigh() int64 {
	if l.EndOffset() != l.recovered.EndOffset { // somebody went on
		return l.HighWatermark()
	}
	return max(l.HighWatermark(), l.owed.Load())
}

// SetHighWatermark moves the high watermark, bounded to StartOffset and EndOffset, and returns what it is now.
func (l *Log) SetHighWatermark(offset int64) int64 {
	return l.SetHighWatermarkPosition(offsetOnly(offset))
}

// SetHighWatermarkPosition is SetHighWatermark with a place that is already known, so that nobody has to look it up.
func (l *Log) SetHighWatermarkPosition(p Position) int64 {
	if l.owed.Load() != 0 {
		l.owed.Store(0)
	}
	l.marks.Lock()
	l.setHighLocked(p)
	high := l.high.Load().Offset
	l.marks.Unlock()
	if l.decided.Load() {
		l.mu.Lock()
		l.updateUnstableLocked()
		l.mu.Unlock()
	}
	return high
}

func (l *Log) setHighLocked(p Position) {
	if end := l.end.Load(); p.Offset >= end.Offset {
		p = *end
	} else if start := l.start.Load(); p.Offset < start {
		p = offsetOnly(start)
	}
	if old := l.high.Load(); old == nil || *old != p && (old.Offset != p.Offset || p.SegmentBase >= 0) {
		l.high.Store(&p)
	}
}

// LastStableOffset is the offset below which every transaction is decided and everything is committed.
func (l *Log) LastStableOffset() int64 {
	high := l.HighWatermark() // before unstable: what becomes unstable later lies behind it
	if u := l.unstable.Load(); u != nil && u.Offset < high {
		return u.Offset
	}
	return high
}

// LastStablePosition is LastStableOffset with its place.
func (l *Log) LastStablePosition() Position {
	high := l.HighWatermarkPosition()
	if u := l.unstable.Load(); u != nil && u.Offset < high.Offset {
		return l.placeOf(&l.unstable)
	}
	return high
}

// placeOf returns what p holds, with the place looked up (and remembered) when only the offset is known.
func (l *Log) placeOf(p *atomic.Pointer[Position]) Position {
	known := p.Load()
	if known == nil {
		return l.EndPosition()
	}
	if known.SegmentBase >= 0 {
		return *known
	}
	found, err := l.positionOf(known.Offset)
	if err != nil {
		return *known
	}
	p.CompareAndSwap(known, &found)
	return found
}

// updateUnstableLocked brings the first unstable offset up to date with the producers and the high watermark.
func (l *Log) updateUnstableLocked() {
	p := &l.mu.producers
	p.committed(l.HighWatermark())
	l.decided.Store(len(p.unreplicated) > 0)
	first, ok := p.firstUnstable()
	if !ok {
		l.unstable.Store(nil)
		return
	}
	if start := l.start.Load(); first.Offset < start {
		first = offsetOnly(start)
	}
	if old := l.unstable.Load(); old == nil || *old != first && (old.Offset != first.Offset || first.SegmentBase >= 0) {
		l.unstable.Store(&first)
	}
}

// RecoveryPoint is the offset below which everything is known to be on disk.
func (l *Log) RecoveryPoint() int64 { return l.recoveryPoint.Load() }

// checkpointPoint is the recovery point as the checkpoint is to have it. Recovery looks at the segment that holds it and
// believes those before, indexes included. Flush syncs the batches of the active segment but not its indexes; so that they
// are not believed should the segment be rolled and the machine stop, the checkpoint stays within that segment.
func (l *Log) checkpointPoint() int64 {
	point := l.RecoveryPoint()
	list := l.list()
	s := list[floor(list, point-1)]
	if s.base < point && !s.indexSynced.Load() {
		return point - 1
	}
	return point
}

// Size is the number of bytes in all segments.
func (l *Log) Size() int64 {
	var size int64
	for _, s := range l.list() {
		size += s.size.Load()
	}
	return size
}

// Segments is the number of segments.
func (l *Log) Segments() int { return len(l.list()) }

func (l *Log) list() []*segment { return *l.segments.Load() }

func (l *Log) active() *segment {
	list := l.list()
	return list[len(list)-1]
}

// floor returns the index of the segment that holds offset, or would.
func floor(list []*segment, offset int64) int {
	return max(0, sort.Search(len(list), func(i int) bool { return list[i].base > offset })-1)
}

// LatestEpoch returns the newest leader epoch in the log.
func (l *Log) LatestEpoch() (int32, bool) { return l.epochs.load().latest() }

// EpochAt returns the leader epoch under which the record at offset was written.
func (l *Log) EpochAt(offset int64) (int32, bool) { return l.epochs.load().at(offset) }

// EndOffsetForEpoch returns the largest epoch that is not above the asked one, and the offset at which the next
// epoch starts (the log's end for the newest). (-1, -1) when there is none. An epoch that is older than all that the
// log knows is returned as it is, with the offset at which the log's first one starts. KIP-279.
func (l *Log) EndOffsetForEpoch(epoch int32) (foundEpoch int32, endOffset int64) {
	return l.epochs.load().endOf(epoch, l.EndOffset())
}

// AssignEpochStart notes that epoch starts at offset.
//
// The file follows in the background: a broker that becomes leader of thousands of partitions must not wait for thousands
// of fsyncs. An entry that a crash takes away is derived from the batches again, for flushing writes the file before it
// moves the recovery point; one of a leader that wrote nothing describes nothing.
func (l *Log) AssignEpochStart(epoch int32, offset int64) error {
	if err := l.Err(); err != nil {
		return err
	}
	if epoch < 0 || offset < 0 {
		return fmt.Errorf("%w: epoch %d cannot start at offset %d", kerr.InvalidRequest, epoch, offset)
	}
	if l.Config().Format != FormatV2 {
		return nil // messages carry no epochs: whoever follows truncates by the high watermark
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs.set(l.epochs.load().assign(epoch, offset))
	return nil
}

// flushEpochs writes the epochs' file. The caller holds the lock of flushes, which keeps the directory's name.
func (l *Log) flushEpochs() error {
	return l.parent.fail(l.epochs.flush(l.env.fs, l.Dir()))
}

// ProducerState is what the log knows of one producer id (DescribeProducers, KIP-664).
type ProducerState struct {
	ProducerID       int64
	Epoch            int16
	LastSequence     int32
	LastTimestamp    int64
	CoordinatorEpoch int32 // -1 before the first marker
	TxnStartOffset   int64 // -1 without an open transaction
}

// ProducerStates lists the producers, ordered by id.
func (l *Log) ProducerStates() []ProducerState {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []ProducerState
	for _, p := range l.mu.producers.sorted() {
		last, _ := p.last()
		list = append(list, ProducerState{
			ProducerID: p.id, Epoch: p.epoch, LastSequence: last.lastSeq, LastTimestamp: p.lastTimestamp,
			CoordinatorEpoch: p.coordinatorEpoch, TxnStartOffset: p.txnStart,
		})
	}
	return list
}

// VerifyTransaction returns the guard that the first write of a producer's transaction has to carry, nil when the
// producer's transaction is already open here (KIP-890).
func (l *Log) VerifyTransaction(producerID int64, sequence int32, epoch int16) *VerificationGuard {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.producers.verify(producerID, sequence, epoch, l.env.nowMs())
}

// expireProducers forgets producers that have been idle for too long.
func (l *Log) expireProducers(nowMs int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.producers.expire(nowMs, l.env.expirationMs.Load())
}

func (l *Log) segmentPath(base int64, suffix string) string {
	return filepath.Join(l.Dir(), fileName(base, suffix))
}

func (l *Log) warnf(format string, args ...any) {
	l.env.log.WithField("partition", l.tp.String()).Warnf(format, args...)
}
