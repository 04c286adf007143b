package partition

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// Moves of replicas between the log directories of this broker (KIP-113).
//
// The wanted directory gets a future log, which a Mover fills from the current one, piece by piece, while the replica
// leads or follows as ever. When there is nothing left to copy, the last piece is copied and the logs are swapped while
// the replica stands still (role held for writing), so nobody appends to a log that is about to go. All of it is on
// the disk by then, hence what was durable stays so.
//
// Nothing of this has to be remembered but the future log itself: it is found again after a restart, and after each
// change of role it goes on being filled from whatever the current log holds then.

// Movers fill future logs.
type Movers interface {
	// Start begins, or goes on, to fill the future logs of these.
	Start(ps []*Partition)
	// Stop ends it. When it returns nothing is copied for these any more.
	Stop(tps []commitlog.TopicPartition)
}

// noMovers are the movers of a Manager that was given none: future logs stay as they are.
type noMovers struct{}

func (noMovers) Start([]*Partition)              {}
func (noMovers) Stop([]commitlog.TopicPartition) {}

// ErrNotMoving is returned to a mover whose partition has no future log (any more).
var ErrNotMoving = errors.New("the replica is not moved")

// What may be left to do while the replica stands still: pieces to copy, and bytes to flush.
const (
	piecesAtSwap    = 16
	unflushedAtSwap = 16 << 20
)

// LogDirChange asks for a replica to be in a log directory.
type LogDirChange struct {
	TP  commitlog.TopicPartition
	Dir string
}

// AlterLogDirs begins to move replicas to other log directories, or ends moves: a replica that is asked for where it is
// stays there. A replica that is not here yet, but is asked for, will be made in that directory. Errors, in request
// order:
//
//   - LOG_DIR_NOT_FOUND: it is none of this broker's
//   - KAFKA_STORAGE_ERROR: the directory or the replica is offline; or another directory is, which may hold the
//     beginnings of an earlier move
//   - REPLICA_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION: there is no such replica here; the wish is remembered
//   - INVALID_TOPIC_EXCEPTION: the topic's name leaves no room for that of a future log
func (m *Manager) AlterLogDirs(changes []LogDirChange) []PartitionError {
	m.orders.Lock()
	defer m.orders.Unlock()
	each := make([]PartitionError, len(changes))
	for i, c := range changes {
		each[i] = PartitionError{TP: c.TP, Err: m.alterLogDir(c)}
		if each[i].Err != nil {
			m.cfg.Log.WithField("partition", c.TP.String()).WithError(each[i].Err).Warnf("replica is not moved to %s", c.Dir)
		}
	}
	return each
}

func (m *Manager) alterLogDir(c LogDirChange) error {
	m.mu.RLock()
	p, known := m.mu.partitions[c.TP]
	m.mu.RUnlock()
	if err := m.logs.CheckDir(c.Dir); err != nil {
		return err
	}
	if known && p == nil {
		return kerr.KafkaStorageError
	}
	if p != nil {
		if future := p.future(); future != nil && !future.IsIn(c.Dir) {
			m.endMove(p)
		}
	}
	if err := m.logs.PreferDir(c.TP, c.Dir); err != nil {
		return err
	}
	if _, err := m.hosted(c.TP); err != nil {
		return notAvailable(err)
	}
	begun, err := p.beginMove(c.Dir)
	if err != nil {
		return notAvailable(err)
	}
	if begun && !m.orders.closed {
		m.cfg.Movers.Start([]*Partition{p})
	}
	return nil
}

// notAvailable is how this API has always told that there is no replica.
func notAvailable(err error) error {
	if errors.Is(err, kerr.NotLeaderForPartition) {
		return kerr.ReplicaNotAvailable
	}
	return err
}

// beginMove makes the future log, unless the replica is where it should be or on its way there.
func (p *Partition) beginMove(dir string) (begun bool, err error) {
	p.role.Lock()
	defer p.role.Unlock()
	log, err := p.local(None, false)
	if err != nil || log.IsIn(dir) || p.role.future != nil {
		return false, err
	}
	for _, d := range p.m.logs.Dirs() {
		if d.Err != nil {
			return false, fmt.Errorf("log directory %s is offline and may hold an earlier future log: %w", d.Path, kerr.KafkaStorageError)
		}
	}
	p.role.flushed = 0
	if p.role.future, err = p.m.logs.GetOrCreate(p.tp, log.TopicID(), true); err != nil {
		p.role.future = nil
		return false, err
	}
	p.m.cfg.Log.WithField("partition", p.tp.String()).Infof("replica is being moved from %s to %s", log.ParentDir(), dir)
	return true, nil
}

// endMove throws the future log away.
func (m *Manager) endMove(p *Partition) {
	if p.forgetFuture() == nil {
		return
	}
	m.cfg.Log.WithField("partition", p.tp.String()).Info("move between log directories was ended")
	if err := m.logs.DeleteFuture(p.tp); err != nil {
		m.cfg.Log.WithField("partition", p.tp.String()).WithError(err).Warn("future log could not be deleted")
	}
}

// forgetFuture stops the mover and returns the future log that it had to fill, nil if there was none.
func (p *Partition) forgetFuture() *commitlog.Log {
	p.m.cfg.Movers.Stop([]commitlog.TopicPartition{p.tp})
	p.role.Lock()
	defer p.role.Unlock()
	future := p.role.future
	p.role.future = nil
	return future
}

func (p *Partition) future() *commitlog.Log {
	p.role.RLock()
	defer p.role.RUnlock()
	return p.role.future
}

// resumeMoveLocked takes up a future log that was found when the logs were opened. One of another topic of the same name,
// or one that is of no use because the current log is in its directory, goes.
func (p *Partition) resumeMoveLocked() {
	log, future := p.role.log, p.m.logs.GetFuture(p.tp)
	if p.role.future != nil || future == nil {
		return
	}
	other := !future.TopicID().IsZero() && !log.TopicID().IsZero() && future.TopicID() != log.TopicID()
	if other || future.ParentDir() == log.ParentDir() {
		if err := p.m.logs.DeleteFuture(p.tp); err != nil {
			p.m.cfg.Log.WithField("partition", p.tp.String()).WithError(err).Warn("useless future log could not be deleted")
		}
		return
	}
	p.role.future = future
}

// goOnMoving tells the movers of those replicas of an order that have a future log.
func (m *Manager) goOnMoving(ts []transition) {
	var moving []*Partition
	for _, t := range ts {
		if t.out.Err == nil && t.p.future() != nil {
			moving = append(moving, t.p)
		}
	}
	if len(moving) > 0 && !m.orders.closed {
		m.cfg.Movers.Start(moving)
	}
}

// Move does one step of a replica's move: it copies up to maxBytes (but one batch at least), and when that was the last
// of it, swaps the logs: done. ErrNotMoving when there is nothing to move; KAFKA_STORAGE_ERROR when one of the two
// directories has failed.
//
// Before the swap the future log is flushed and what came meanwhile is copied, so that little is left to copy and to
// flush while the replica stands still.
func (p *Partition) Move(maxBytes int) (copied int, done bool, err error) {
	future, copied, unflushed, err := p.copyPiece(maxBytes)
	if err != nil || copied >= maxBytes/2 {
		return copied, false, err // there is more, or was when this piece was read
	}
	if unflushed > unflushedAtSwap {
		err := future.Flush()
		p.role.cutting.Lock()
		p.role.flushed = future.Size()
		p.role.cutting.Unlock()
		return copied, false, err
	}
	n, done, err := p.swap(maxBytes)
	return copied + n, done, err
}

func (p *Partition) copyPiece(maxBytes int) (future *commitlog.Log, copied int, unflushed int64, err error) {
	p.role.RLock()
	defer p.role.RUnlock()
	current, future, err := p.moving()
	if err != nil {
		return nil, 0, 0, err
	}
	p.role.cutting.Lock()
	defer p.role.cutting.Unlock()
	copied, err = future.CopyFrom(current, maxBytes)
	p.role.flushed = min(p.role.flushed, future.Size())
	return future, copied, future.Size() - p.role.flushed, err
}

// moving returns the two logs of a move. Under role.
func (p *Partition) moving() (current, future *commitlog.Log, err error) {
	current, err = p.local(None, false)
	if err != nil || p.role.future == nil {
		return nil, nil, ErrNotMoving
	}
	return current, p.role.future, nil
}

// swap copies what has come since the last piece and puts the future log in the place of the current one.
func (p *Partition) swap(maxBytes int) (copied int, done bool, err error) {
	copied, done, err = p.swapStanding(maxBytes)
	if done {
		p.wakeAll()
	}
	return copied, done, err
}

func (p *Partition) swapStanding(maxBytes int) (copied int, done bool, err error) {
	p.role.Lock()
	defer p.role.Unlock()
	current, future, err := p.moving()
	if err != nil {
		return 0, false, err
	}
	for range piecesAtSwap {
		n, err := future.CopyFrom(current, maxBytes)
		copied += n
		if err != nil {
			return copied, false, err
		}
		if n == 0 && future.EndOffset() == current.EndOffset() {
			break
		}
	}
	if future.EndOffset() < current.EndOffset() {
		return copied, false, nil // more came than we may keep it waiting for
	}
	promoted, err := p.m.logs.PromoteFuture(p.tp)
	if err != nil {
		return copied, false, err
	}
	p.role.log, p.role.future = promoted, nil
	p.state.Lock()
	defer p.state.Unlock()
	p.state.relocated(promoted.RecoveryPoint())
	p.m.cfg.Log.WithField("partition", p.tp.String()).Infof("replica was moved from %s to %s", current.ParentDir(), promoted.ParentDir())
	return copied, true, nil
}

// relocated notes that the log is another one with the same records: offsets lie elsewhere in its segments, and what is
// on the disk of it is durable.
func (c *core) relocated(durable int64) {
	c.hw = commitlog.Position{Offset: c.hw.Offset, SegmentBase: -1}
	for i := range c.remotes {
		c.remotes[i].end = commitlog.Position{Offset: c.remotes[i].end.Offset, SegmentBase: -1}
	}
	c.durable = commitlog.Position{Offset: durable, SegmentBase: -1}
}
