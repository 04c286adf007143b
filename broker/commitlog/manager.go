package commitlog

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
)

// Manager owns the log directories of one broker and every log in them. Its methods may be called from any goroutine.
//
// Goroutines: one that does what the clock asks for (housekeeper.go); per directory, one that makes rolled segments
// durable (flusher.go); and those that compact (cleaner_threads.go). Close stops them and waits for them.
type Manager struct {
	cfg  ManagerConfig
	env  *environment
	log  *logrus.Entry
	dirs []*managedDir

	mu struct {
		sync.Mutex
		current  map[TopicPartition]*Log
		future   map[TopicPartition]*Log
		prefer   map[TopicPartition]string // where the next log of a partition goes
		replaced []*Log                    // found when the directories were opened beside what replaced them
		closed   bool
	}

	creating  [32]sync.Mutex // by hash: who holds one makes a log
	reopening sync.Mutex     // held while a directory is given another life

	cleaner       cleaner
	cleanerChange sync.Mutex // held while the threads are started and ended
	cleanerRun    *cleanerRun

	deletions deletions
	stop      chan struct{}
	running   sync.WaitGroup
}

func (cfg *ManagerConfig) setDefaults() {
	pick := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	pick(&cfg.RetentionCheck, 5*time.Minute)
	pick(&cfg.FlushCheck, time.Minute) // Kafka's default is never: with its default of flush.ms there is nothing to do
	pick(&cfg.CheckpointInterval, time.Minute)
	pick(&cfg.StartOffsetCheckpointInterval, time.Minute)
	pick(&cfg.HighWatermarkInterval, 5*time.Second)
	pick(&cfg.ProducerIDExpiration, 24*time.Hour)
	pick(&cfg.ProducerIDCheck, 10*time.Minute)
	if cfg.RecoveryThreadsPerDir <= 0 {
		cfg.RecoveryThreadsPerDir = 1
	}
	if cfg.BrokerEpoch == nil {
		cfg.BrokerEpoch = func() int64 { return noBrokerEpoch }
	}
	if cfg.TopicConfig == nil {
		c := cfg.Default
		cfg.TopicConfig = func(string) Config { return c }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
}

// Open locks the directories, loads every log in them, recovers those that were not closed cleanly and starts the
// background work. A directory that cannot be used is reported by Dirs and to OnDirFailure; Open fails when none is
// left or when one partition has two logs.
func Open(cfg ManagerConfig) (*Manager, error) {
	m, err := load(cfg)
	if err == nil {
		m.start()
	}
	return m, err
}

// ExpireProducerIDs changes how long an idle producer is remembered (producer.id.expiration.ms).
func (m *Manager) ExpireProducerIDs(after time.Duration) {
	m.env.expirationMs.Store(after.Milliseconds())
}

// load is Open without the background work.
func load(cfg ManagerConfig) (*Manager, error) {
	cfg.setDefaults()
	m := &Manager{cfg: cfg, log: cfg.Log, stop: make(chan struct{})}
	m.cleaner.m = m
	m.mu.current = map[TopicPartition]*Log{}
	m.mu.future = map[TopicPartition]*Log{}
	m.mu.prefer = map[TopicPartition]string{}
	m.env = &environment{
		fs: cfg.FS, now: cfg.Now, log: cfg.Log, files: &openFiles{},
		limits:    record.Limits{MaxDecompressed: cfg.MaxDecompressed},
		flushSoon: m.flushSoon, removeLater: m.removeLater, lowered: m.pointsLowered,
	}
	m.ExpireProducerIDs(cfg.ProducerIDExpiration)
	seen := map[string]bool{}
	for _, path := range cfg.Dirs {
		path = filepath.Clean(path)
		if seen[path] {
			m.unlock()
			return nil, fmt.Errorf("log directory %s is named twice", path)
		}
		seen[path] = true
		d := &managedDir{written: map[string]map[TopicPartition]int64{}}
		d.path = path
		d.life.Store(&logDir{path: path, onFail: m.dirFailed})
		d.flusher.init()
		m.dirs = append(m.dirs, d)
	}
	if err := m.lockDirs(); err != nil {
		m.unlock()
		return nil, err
	}
	if cfg.OnLocked != nil {
		cfg.OnLocked(m.Dirs())
	}
	if err := m.loadAll(); err != nil {
		m.unlock()
		return nil, err
	}
	m.putReplacedAway()
	if !m.anyOnline() {
		m.unlock()
		return nil, fmt.Errorf("no log directory can be used: %w", m.dirs[0].err())
	}
	return m, nil
}

// Get returns the current log of a partition, or nil.
func (m *Manager) Get(tp TopicPartition) *Log { return m.lookup(tp, false) }

// GetFuture returns the log that is to replace the partition's current one (a move between directories), or nil.
func (m *Manager) GetFuture(tp TopicPartition) *Log { return m.lookup(tp, true) }

// GetOrCreate returns the partition's log and creates it, in the directory that holds the fewest logs, when there is
// none. A zero id makes a log without partition.metadata. An existing log is returned whatever its id: the caller compares.
// While a directory is offline a partition may have its log in there: then the caller must know that the partition is new.
// A directory in which not even a folder can be made goes offline, and the next one is taken.
func (m *Manager) GetOrCreate(tp TopicPartition, id TopicID, isFuture bool) (*Log, error) {
	if l := m.lookup(tp, isFuture); l != nil {
		return l, l.parent.err()
	}
	one := &m.creating[tp.hash()%uint32(len(m.creating))]
	one.Lock() // many logs are made side by side, but each once
	defer one.Unlock()
	if l := m.lookup(tp, isFuture); l != nil {
		return l, l.parent.err()
	}
	state := currentDir
	if isFuture {
		state = futureDir
	}
	name, err := dirName(tp, state)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kerr.InvalidTopicException, err)
	}
	c := m.cfg.TopicConfig(tp.Topic)
	for {
		d, err := m.takePlace(tp, isFuture)
		if err != nil {
			return nil, err
		}
		l := newLog(m.env, d, tp, filepath.Join(d.path, name), c)
		l.future.Store(isFuture)
		err = m.cfg.FS.MkdirAll(l.Dir(), 0o755)
		if err != nil && !isFuture {
			_ = d.fail(err)
			m.leavePlace(d)
			continue
		}
		if err == nil {
			err = m.create(l, id)
		}
		if err != nil {
			m.leavePlace(d)
			return nil, d.fail(err)
		}
		if err := m.use(l); err != nil {
			return nil, err
		}
		return l, nil
	}
}

// create makes the files of a log that was planned.
func (m *Manager) create(l *Log, id TopicID) error {
	// The checkpoints may still speak of an earlier log of that name. After a crash it would be believed of this one,
	// which would lose its beginning (H36).
	if err := m.pointsLowered(l); err != nil {
		return err
	}
	return l.create(id)
}

// use puts a new log into the maps. Its place has been taken.
func (m *Manager) use(l *Log) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		l.parent.logs--
		return fmt.Errorf("%w: the log manager is closed", kerr.KafkaStorageError)
	}
	if err := l.parent.err(); err != nil {
		l.parent.logs--
		return err // the directory may be about to begin another life
	}
	m.logs(l.IsFuture())[l.tp] = l
	delete(m.mu.prefer, l.tp)
	return nil
}

// logs is the map of the current logs or of the future ones. It is read and changed under mu.
func (m *Manager) logs(future bool) map[TopicPartition]*Log {
	if future {
		return m.mu.future
	}
	return m.mu.current
}

func (m *Manager) lookup(tp TopicPartition, future bool) *Log {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.logs(future)[tp]
}

// All returns the current logs in no particular order.
func (m *Manager) All() []*Log { return m.list(false) }

// AllFuture returns the logs that are to replace others, in no particular order.
func (m *Manager) AllFuture() []*Log { return m.list(true) }

func (m *Manager) list(future bool) []*Log {
	m.mu.Lock()
	defer m.mu.Unlock()
	logs := m.logs(future)
	list := make([]*Log, 0, len(logs))
	for _, l := range logs {
		list = append(list, l)
	}
	return list
}

// every returns the current and future logs of a directory.
func (m *Manager) every(d *logDir) []*Log {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []*Log
	for _, logs := range []map[TopicPartition]*Log{m.mu.current, m.mu.future} {
		for _, l := range logs {
			if l.parent == d {
				list = append(list, l)
			}
		}
	}
	return list
}

// UpdateTopicConfig gives every log of the topic new settings.
func (m *Manager) UpdateTopicConfig(topic string, c Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, logs := range []map[TopicPartition]*Log{m.mu.current, m.mu.future} {
		for tp, l := range logs {
			if tp.Topic == topic {
				l.SetConfig(c)
			}
		}
	}
}
