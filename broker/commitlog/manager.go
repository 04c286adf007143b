package commitlog

// Manager owns the log directories of one broker and every log in them. Its methods may be called from any goroutine.
type Manager struct{}

// DirInfo describes one log directory.
type DirInfo struct {
	Path string
	Err  error // why the directory is offline; nil while it works
	Logs int
	Size int64 // bytes of all logs in it
}

// Open locks the directories, loads every log in them, recovers those that were not closed cleanly and starts the
// background work. A directory that cannot be used is reported by Dirs and to OnDirFailure; Open fails when none is
// left or when one partition has two logs.
func Open(cfg ManagerConfig) (*Manager, error) { panic("commitlog: Open") }

// Get returns the current log of a partition, or nil.
func (m *Manager) Get(tp TopicPartition) *Log { panic("commitlog: Get") }

// GetFuture returns the log that is to replace the partition's current one (a move between directories), or nil.
func (m *Manager) GetFuture(tp TopicPartition) *Log { panic("commitlog: GetFuture") }

// GetOrCreate returns the partition's log and creates it, in the directory that holds the fewest logs, when there is
// none. A zero id makes a log without partition.metadata. An existing log is returned whatever its id: the caller compares.
func (m *Manager) GetOrCreate(tp TopicPartition, id TopicID, isFuture bool) (*Log, error) {
	panic("commitlog: GetOrCreate")
}

// PreferDir names the directory in which the next log of tp is to be created.
func (m *Manager) PreferDir(tp TopicPartition, dir string) error { panic("commitlog: PreferDir") }

// Delete renames the partition's directory to NAME.UUID-delete and forgets the log; files go after file.delete.delay.ms.
func (m *Manager) Delete(tp TopicPartition) error { panic("commitlog: Delete") }

// SetAside renames the partition's directory to NAME.UUID-stray and forgets the log; its files are kept.
func (m *Manager) SetAside(tp TopicPartition) error { panic("commitlog: SetAside") }

// All returns the current logs in no particular order.
func (m *Manager) All() []*Log { panic("commitlog: All") }

// Dirs describes the log directories in the order of the configuration.
func (m *Manager) Dirs() []DirInfo { panic("commitlog: Dirs") }

// UpdateTopicConfig gives every log of the topic new settings.
func (m *Manager) UpdateTopicConfig(topic string, c Config) { panic("commitlog: UpdateTopicConfig") }

// HighWatermarkCheckpoint is the high watermark that was on disk for tp when the manager was opened or when the log
// was last seen; 0 when there was none.
func (m *Manager) HighWatermarkCheckpoint(tp TopicPartition) int64 {
	panic("commitlog: HighWatermarkCheckpoint")
}

// CheckpointHighWatermarks writes the high watermarks of all logs now.
func (m *Manager) CheckpointHighWatermarks() { panic("commitlog: CheckpointHighWatermarks") }

// CleanBrokerEpoch returns the broker epoch found in the marker of a clean shutdown, or -1 when a directory had none.
func (m *Manager) CleanBrokerEpoch() int64 { panic("commitlog: CleanBrokerEpoch") }

// Close stops the background work, flushes every log, writes checkpoints and the marker of a clean shutdown, and
// unlocks the directories.
func (m *Manager) Close() error { panic("commitlog: Close") }
