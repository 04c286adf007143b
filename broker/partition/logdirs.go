package partition

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// LogDirs describes the log directories in the order of the configuration, and
// the logs in each ordered by name. Partitions that the caller did not ask for
// are the caller's to leave out.
func (m *Manager) LogDirs() []LogDirDescription {
	dirs := m.logs.Dirs()
	out := make([]LogDirDescription, len(dirs))
	at := make(map[string]int, len(dirs))
	for i, d := range dirs {
		out[i] = LogDirDescription{Path: d.Path, Total: None, Usable: None}
		at[d.Path] = i
		if d.Err != nil {
			out[i].Err = kerr.KafkaStorageError
			continue
		}
		if total, usable, err := m.cfg.FS.Space(d.Path); err == nil {
			out[i].Total, out[i].Usable = total, usable
		}
	}
	for _, log := range slices.Concat(m.logs.All(), m.logs.AllFuture()) {
		m.describe(out, at, log)
	}
	for i := range out {
		slices.SortFunc(out[i].Partitions, func(a, b LogDirPartition) int {
			return cmp.Or(cmp.Compare(a.TP.Topic, b.TP.Topic), cmp.Compare(a.TP.Partition, b.TP.Partition))
		})
	}
	return out
}

// describe adds one log to its directory.
func (m *Manager) describe(out []LogDirDescription, at map[string]int, log *commitlog.Log) {
	i, ok := at[log.ParentDir()]
	if !ok || out[i].Err != nil {
		return
	}
	lag := int64(None)
	if p := m.lookup(log.TP()); p != nil {
		if current := p.Log(); current != nil {
			// A replacement is behind the current log's end, a replica behind what
			// it knows to be committed.
			lag = max(0, current.HighWatermark()-log.EndOffset())
			if log.IsFuture() {
				lag = current.EndOffset() - log.EndOffset()
			}
		}
	}
	out[i].Partitions = append(out[i].Partitions, LogDirPartition{TP: log.TP(), Size: log.Size(), OffsetLag: lag, IsFuture: log.IsFuture()})
}
