package commitlog

// A move of a partition's log between directories (KIP-113). A future log, in the directory that the log is to come to, is
// filled from the current one (CopyFrom); when it holds all that the current one holds it takes its place (PromoteFuture).
//
// Two logs of a partition hold the same record at an offset if the same leader epoch wrote there. The current log may be
// cut and written anew while it is copied; so before anything is copied the future log is cut to where the two agree,
// and with the records it takes over the list of epochs: compaction may have taken the first records of an epoch, and what
// is copied would then tell a later beginning.
//
// The end, as Kafka does it: first the future log gets the partition's name, then the old one loses it; each name is durable
// before the next step. A power cut in between leaves two directories of that name. Kafka then refuses to start and has
// the operator choose. Here the new one says, in a file of its own that Kafka does not look at, that it replaced
// another, and how many had before; the higher number is the newer log. The file is there before the name is, and goes
// when the old log has lost its name: from then on there is nothing to choose from.
//
// What was on disk in the old log is on disk in the new one before the names change.

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// replacesFile holds the number of moves that a partition's log had made when it came to where it is.
const replacesFile = "replaces"

// CopyFrom does one step of filling a future log: it cuts what the current log does not have any more, copies up to
// maxBytes (but one batch at least) and takes over high watermark and start. It returns the number of bytes copied; with
// none the logs hold the same, as of when it began. The current log must not be cut meanwhile.
//
// A future log that starts later than the current one, or that a crash has left damaged, is begun anew.
func (l *Log) CopyFrom(current *Log, maxBytes int) (copied int, err error) {
	if err := l.agreeWith(current); err != nil {
		return 0, err
	}
	end := current.EndOffset()
	r, err := current.Read(l.EndOffset(), ReadOptions{MaxBytes: maxBytes, MinOneBatch: true, UpTo: end})
	switch {
	case errors.Is(err, kerr.OffsetOutOfRange):
		// What was to come next has been deleted meanwhile, or always was before the log's start.
		return 0, l.TruncateFullyAndStartAt(current.StartOffset(), noOffset)
	case err != nil:
		return 0, err
	case r.Bytes > 0:
		data, err := r.Range.ReadAll()
		r.Range.Release()
		if err != nil {
			return 0, current.readError(err)
		}
		info, err := l.AppendAsFollower(data)
		if err != nil {
			return 0, err
		}
		copied = info.Bytes
	case l.EndOffset() < end:
		// Compaction left nothing up to the end.
		if err := l.skipTo(end); err != nil {
			return 0, err
		}
	}
	l.adoptEpochs(current)
	l.SetHighWatermark(current.HighWatermark())
	if start := min(current.StartOffset(), l.HighWatermark()); start > l.StartOffset() {
		if _, err := l.AdvanceStartOffset(start, "start of the log that is moved"); err != nil {
			return copied, err
		}
	}
	return copied, nil
}

// agreeWith cuts the log to where its history and that of the current one part. What has nothing of it, or lacks its
// beginning, begins anew: where the current log starts inside a batch only an empty log can take that batch.
func (l *Log) agreeWith(current *Log) error {
	start, end := current.StartOffset(), l.EndOffset()
	to := min(end, current.EndOffset())
	if start < to {
		to = l.epochs.load().agreeUntil(current.epochs.load(), start, to)
	}
	switch {
	case l.corrupt.Load() != nil, l.StartOffset() > start, to <= start && l.StartOffset() < end:
		return l.TruncateFullyAndStartAt(start, noOffset)
	case to < end:
		return l.TruncateTo(to)
	}
	return nil
}

// agreeUntil returns the first offset from from on at which another epoch wrote, at most to. Records without epochs are of
// before there were any, and agree.
func (e epochList) agreeUntil(other epochList, from, to int64) int64 {
	for at := from; at < to; {
		mine, _ := e.at(at)
		theirs, _ := other.at(at)
		if mine != theirs {
			return at
		}
		at = min(e.after(at, to), other.after(at, to))
	}
	return to
}

// after is the first start of an epoch behind offset, at most to.
func (e epochList) after(offset, to int64) int64 {
	if i := sort.Search(len(e), func(i int) bool { return e[i].start > offset }); i < len(e) {
		return min(e[i].start, to)
	}
	return to
}

// adoptEpochs takes over the current log's epochs as far as this log reaches.
func (l *Log) adoptEpochs(current *Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	epochs, _ := current.epochs.load().cutEnd(l.EndOffset())
	epochs, _ = epochs.cutStart(l.StartOffset())
	l.epochs.set(epochs, !slices.Equal(epochs, l.epochs.load()))
}

// skipTo moves the end of the log over offsets that nothing is left of.
func (l *Log) skipTo(offset int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.rollLocked(offset); err != nil {
		return err
	}
	l.moveEndLocked(Position{offset, offset, 0})
	return nil
}

// PromoteFuture makes the partition's future log its current one and returns it; the old one is deleted. The caller
// has seen that the two hold the same records, and nothing is appended to or cut from either until it returns.
func (m *Manager) PromoteFuture(tp TopicPartition) (*Log, error) {
	next, old := m.GetFuture(tp), m.Get(tp)
	if next == nil || old == nil {
		return nil, fmt.Errorf("%w: %s has no future log", kerr.ReplicaNotAvailable, tp)
	}
	if err := next.agreeWith(old); err != nil {
		return nil, err
	}
	if next.EndOffset() != old.EndOffset() || next.StartOffset() > old.StartOffset() {
		return nil, fmt.Errorf("the future log of %s holds offsets %d to %d, the current one %d to %d", tp,
			next.StartOffset(), next.EndOffset(), old.StartOffset(), old.EndOffset())
	}
	if err := next.takeOver(old); err != nil {
		return nil, err
	}
	moves, err := readReplaces(old)
	if err != nil {
		return nil, old.parent.fail(err)
	}
	if err := replaceFile(m.cfg.FS, next.Dir(), replacesFile, fmt.Appendf(nil, "%d\n", moves+1)); err != nil {
		return nil, next.parent.fail(err)
	}
	if _, err := next.rename(tp.String(), false); err != nil {
		return nil, err
	}
	next.future.Store(false)
	m.mu.Lock()
	delete(m.mu.future, tp)
	m.mu.current[tp] = next
	old.parent.logs--
	m.mu.Unlock()
	if err := m.putAway(old, deletedDir); err != nil {
		// Its directory has failed and may come back with the old log in it.
		m.log.WithField("partition", tp.String()).Warnf("the log was moved to %s, the old one could not be deleted: %v", next.Dir(), err)
		return next, nil
	}
	if moves == 0 {
		_ = next.parent.fail(removeIfThere(m.cfg.FS, next.place.path(replacesFile))) // the swap stands all the same
	}
	return next, nil
}

// takeOver gives a future log, durably, what copying records does not bring: the high watermark and the start as they are
// now, and the epochs of leaders that have written nothing (H06).
func (l *Log) takeOver(old *Log) error {
	l.SetHighWatermark(old.HighWatermark())
	if _, err := l.AdvanceStartOffset(old.StartOffset(), "start of the log that is moved"); err != nil {
		return err
	}
	l.mu.Lock()
	epochs, _ := old.epochs.load().cutStart(l.StartOffset())
	l.epochs.set(epochs, true)
	l.mu.Unlock()
	if err := l.settled(); err != nil {
		return err
	}
	return l.Flush()
}

// readReplaces tells how many moves led to where the log is; 0 when none left a trace.
func readReplaces(l *Log) (int64, error) {
	data, err := readSmallFile(l.env.fs, l.place.path(replacesFile), maxSmallFile)
	if err != nil || data == nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil || n < 0 {
		return 0, nil // whatever it is, it is none of ours
	}
	return n, nil
}

// newerOfTwo tells which of two logs that have the same partition's name replaced the other. Without a trace of that
// nobody knows, and the operator has to say.
func newerOfTwo(a, b *Log) (newer, older *Log, err error) {
	ofA, errA := readReplaces(a)
	ofB, errB := readReplaces(b)
	switch err := errors.Join(errA, errB); {
	case err != nil:
		return nil, nil, err
	case a.IsFuture() || ofA == ofB:
		return nil, nil, fmt.Errorf("%s has two logs, %s and %s: a directory failed while its replica was moved; "+
			"remove the one in the directory that failed", a.tp, a.Dir(), b.Dir())
	case ofA > ofB:
		return a, b, nil
	}
	return b, a, nil
}

// putReplacedAway ends the moves that were interrupted between their two names.
func (m *Manager) putReplacedAway() {
	m.mu.Lock()
	replaced := m.mu.replaced
	m.mu.replaced = nil
	m.mu.Unlock()
	for _, old := range replaced {
		m.log.WithField("partition", old.tp.String()).Warnf("%s was replaced by %s and is deleted", old.Dir(), m.Get(old.tp).Dir())
		_ = m.putAway(old, deletedDir) // an error has taken its directory offline
	}
}

// ForgetFuture forgets a future log whose directory has failed; its files stay where they are.
func (m *Manager) ForgetFuture(l *Log) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.future[l.tp] == l { // its directory may have come back, with another one
		m.forgetLocked(l.tp, true)
	}
}
