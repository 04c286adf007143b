package commitlog

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// CleanerConfig is how compaction works. The zero value has no threads: nothing is compacted.
type CleanerConfig struct {
	Threads           int           // log.cleaner.threads; 0 when log.cleaner.enable is false
	DedupeBytes       int64         // log.cleaner.dedupe.buffer.size; of all threads together
	LoadFactor        float64       // log.cleaner.io.buffer.load.factor
	BufferBytes       int64         // log.cleaner.io.buffer.size; of all threads together
	MaxBytesPerSecond float64       // log.cleaner.io.max.bytes.per.second, read and written; 0: without limit
	Backoff           time.Duration // log.cleaner.backoff.ms; the pause of a thread that finds nothing to do
}

const (
	defaultDedupeBytes = 128 << 20
	defaultLoadFactor  = 0.9
	defaultBufferBytes = 512 << 10
	minBufferBytes     = 64 << 10
	defaultBackoff     = 15 * time.Second
)

func (c CleanerConfig) withDefaults() CleanerConfig {
	c.DedupeBytes = cmp.Or(c.DedupeBytes, defaultDedupeBytes)
	c.LoadFactor = cmp.Or(c.LoadFactor, defaultLoadFactor)
	c.BufferBytes = cmp.Or(c.BufferBytes, defaultBufferBytes)
	c.Backoff = cmp.Or(c.Backoff, defaultBackoff)
	return c
}

// cleaningState is what the cleaner remembers of one log.
type cleaningState struct {
	busy     bool                  // under cleaner.mu: a thread is at it
	notAgain int64                 // under cleaner.mu: ms; not before this time
	failed   atomic.Pointer[error] // why the log is set aside
}

// CleanerError is why the log is not compacted any more; nil while it is. Kafka calls such a partition uncleanable. It
// stays so until the broker starts anew or the log is begun anew.
func (l *Log) CleanerError() error {
	if p := l.cleaning.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// CleanerStats counts what compaction has done since the start.
type CleanerStats struct {
	Cleanings                   int64
	BytesRead, BytesWritten     int64
	RecordsRead, RecordsWritten int64
	SetAside                    int // logs whose compaction failed
}

// cleaner compacts the logs of a manager on some threads, each time the one with the largest share of dirty bytes.
type cleaner struct {
	m        *Manager
	mu       sync.Mutex // held while a log is chosen
	throttle throttle
	stats    struct {
		sync.Mutex
		CleanerStats
	}
}

// errStopping ends a cleaning because the manager is closing, or the cleaner gets other settings.
var errStopping = errors.New("the cleaner stops")

// cleanerRun is the threads under one configuration.
type cleanerRun struct {
	cfg     CleanerConfig
	stop    chan struct{}
	pace    func(n int64) error // waits as the throttle wants; its error ends a cleaning
	running sync.WaitGroup
}

// CleanerStats tells what compaction has done.
func (m *Manager) CleanerStats() CleanerStats {
	m.cleaner.stats.Lock()
	s := m.cleaner.stats.CleanerStats
	m.cleaner.stats.Unlock()
	for _, l := range m.All() {
		if l.CleanerError() != nil {
			s.SetAside++
		}
	}
	return s
}

// ConfigureCleaner puts new settings in force. Cleanings under way end and begin anew.
func (m *Manager) ConfigureCleaner(c CleanerConfig) {
	m.cleanerChange.Lock()
	defer m.cleanerChange.Unlock()
	if m.cleanerRun != nil {
		if m.cleanerRun.cfg == c.withDefaults() {
			return
		}
		m.cleanerRun.end()
	}
	if m.isClosed() {
		m.cleanerRun = nil
		return
	}
	m.cleanerRun = m.cleaner.run(c)
}

func (c *cleaner) run(cfg CleanerConfig) *cleanerRun {
	r := &cleanerRun{cfg: cfg.withDefaults(), stop: make(chan struct{})}
	r.pace = func(n int64) error { return c.throttle.pace(n, r.stop) }
	c.throttle.setRate(r.cfg.MaxBytesPerSecond)
	for range r.cfg.Threads {
		r.running.Go(func() { c.work(r) })
	}
	return r
}

func (r *cleanerRun) end() {
	close(r.stop)
	r.running.Wait()
}

// work is one thread.
func (c *cleaner) work(r *cleanerRun) {
	timer := time.NewTimer(r.cfg.Backoff)
	defer timer.Stop()
	for {
		if c.cleanDirtiest(r) {
			select {
			case <-r.stop:
				return
			default:
				continue
			}
		}
		timer.Reset(r.cfg.Backoff)
		select {
		case <-r.stop:
			return
		case <-timer.C:
		}
	}
}

// cleanDirtiest cleans the log that needs it most; false when none does.
func (c *cleaner) cleanDirtiest(r *cleanerRun) bool {
	now := c.m.env.nowMs()
	l, scope := c.choose(now)
	if l == nil {
		return false
	}
	err := c.clean(l, scope, now, r)
	retry := now + r.cfg.Backoff.Milliseconds()
	c.mu.Lock()
	defer c.mu.Unlock()
	l.cleaning.busy = false
	switch {
	case err == nil:
	case errors.Is(err, errStopping):
	case errors.Is(err, errOvertaken):
		l.cleaning.notAgain = retry
	case l.Err() != nil: // the directory is offline, or the log is gone
	case isFull(err):
		l.cleaning.notAgain = retry
		l.warnf("the log cannot be compacted before there is room: %v", err)
	default:
		l.setAside(err)
	}
	return true
}

// setAside ends the compaction of a log that fails: to try it again and again would cost the others.
func (l *Log) setAside(err error) {
	l.cleaning.failed.Store(&err)
	l.env.log.WithField("partition", l.tp.String()).Errorf("the log is not compacted any more: %v", err)
}

// choose picks the log with the largest share of dirty bytes, of those worth it, and marks it busy.
func (c *cleaner) choose(nowMs int64) (*Log, cleanScope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var best *Log
	var scope cleanScope
	logs := c.m.All()
	slices.SortFunc(logs, func(a, b *Log) int { return a.tp.compare(b.tp) })
	for _, l := range logs {
		cfg := l.Config()
		if !cfg.CleanupCompact || l.cleaning.busy || l.cleaning.notAgain > nowMs || l.CleanerError() != nil || l.Err() != nil {
			continue
		}
		facts, err := l.cleanFacts(&cfg, nowMs)
		if err != nil {
			if l.Err() == nil && !errors.Is(err, errOvertaken) {
				l.setAside(err)
			}
			continue
		}
		if s := facts.scope(); s.ready && (best == nil || s.ratio > scope.ratio) {
			best, scope = l, s
		}
	}
	if best != nil {
		best.cleaning.busy = true
	}
	return best, scope
}

// cleanFacts gathers what decides about the cleaning of the log.
func (l *Log) cleanFacts(c *Config, nowMs int64) (cleanFacts, error) {
	truncations := l.truncations.Load()
	stable, list := l.LastStableOffset(), l.list()
	last := len(list) - 1
	f := cleanFacts{
		active: list[last].base, stable: stable, nowMs: nowMs, lagMs: c.MinCompactionLagMs, maxLagMs: c.MaxCompactionLagMs,
		worthwhile: c.MinCleanableDirtyRatio, dirty: firstDirty(l.cleaned.Load(), l.StartOffset(), l.EndOffset()),
	}
	for i, s := range list[:last] {
		fact := cleanSegment{base: s.base, size: s.size.Load()}
		if list[i+1].base > f.dirty {
			var err error
			if fact.newest, fact.oldest, err = s.age(c); err != nil {
				if !l.stillHas(list[:last], truncations) {
					err = errOvertaken
				}
				return f, err
			}
		}
		f.sealed = append(f.sealed, fact)
	}
	return f, nil
}

// age tells the largest timestamps of a segment (the time of its file, where records have none) and of its first batch, as far
// as the settings make them matter.
func (s *segment) age(c *Config) (newest, oldest int64, err error) {
	if c.MinCompactionLagMs > 0 {
		if newest, err = s.retentionTime(); err != nil {
			return 0, 0, err
		}
	}
	if c.MaxCompactionLagMs < math.MaxInt64 && s.size.Load() > 0 {
		f, err := s.open()
		if err != nil {
			return 0, 0, err
		}
		defer s.file.release()
		e, _, err := newScanner(f, 0, s.size.Load(), peekBytes).next()
		if err != nil {
			return 0, 0, err
		}
		oldest = e.maxTime
	}
	return newest, oldest, nil
}

// clean cleans one log and notes how far it got.
//
// First all that is to be cleaned becomes durable, and so does the recovery point: recovery looks only at what lies behind it,
// and never has to judge gaps that a compaction has made.
func (c *cleaner) clean(l *Log, scope cleanScope, nowMs int64, r *cleanerRun) error {
	if err := l.flushSealed(); err != nil {
		return err
	}
	if l.RecoveryPoint() < scope.bound {
		return errOvertaken
	}
	d := c.m.dirOf(l)
	if err := c.m.recoveryPointWritten(d, l, scope.bound); err != nil {
		return err
	}
	threads := int64(max(r.cfg.Threads, 1))
	p := cleanPass{
		l: l, c: l.Config(), scope: scope, nowMs: nowMs, buffer: int(max(r.cfg.BufferBytes/threads/2, minBufferBytes)),
		pace: func(n int64) error {
			if err := l.Err(); err != nil {
				return err // nothing is gained any more, and who reopens the directory waits for this
			}
			return r.pace(n)
		},
	}
	began := time.Now()
	if err := p.run(r.cfg.DedupeBytes/threads, r.cfg.LoadFactor); err != nil {
		return err
	}
	l.marks.Lock()
	if l.truncations.Load() == p.truncations {
		l.cleaned.Store(p.upTo)
	}
	l.marks.Unlock()
	c.count(p.stats)
	l.env.log.WithField("partition", l.tp.String()).Infof(
		"compacted up to offset %d in %v: %d of %d records are left, %d of %d bytes", p.upTo, time.Since(began).Round(time.Millisecond),
		p.stats.recordsWritten, p.stats.recordsRead, p.stats.bytesWritten, p.stats.bytesRead)
	return c.m.writeCleanedOffsets(d)
}

func (c *cleaner) count(s cleanStats) {
	c.stats.Lock()
	defer c.stats.Unlock()
	c.stats.Cleanings++
	c.stats.BytesRead += s.bytesRead
	c.stats.BytesWritten += s.bytesWritten
	c.stats.RecordsRead += s.recordsRead
	c.stats.RecordsWritten += s.recordsWritten
}

func (m *Manager) dirOf(l *Log) *managedDir {
	i := slices.IndexFunc(m.dirs, func(d *managedDir) bool { return d.path == l.parent.path })
	return m.dirs[i]
}

// recoveryPointWritten brings to disk that everything of a log below offset is durable.
func (m *Manager) recoveryPointWritten(d *managedDir, l *Log, offset int64) error {
	d.checkpoint.Lock()
	known := d.written[recoveryPointFile][l.tp]
	d.checkpoint.Unlock()
	if known >= offset {
		return nil
	}
	return m.writeCheckpoint(d, recoveryPointFile, (*Log).checkpointPoint)
}
