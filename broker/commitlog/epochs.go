package commitlog

// Leader epochs: which leader wrote from which offset on. Followers truncate by them (KIP-101, KIP-279), so
//
//   - epochs and their start offsets both grow strictly from entry to entry;
//   - entries describe the log: none starts at or beyond the end, except that of a leader that has written nothing yet;
//   - a reader sees a whole list: it is replaced, never changed.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"

	"barnabas/broker/vfs"
)

const (
	epochFile      = "leader-epoch-checkpoint"
	undefinedEpoch = -1
)

// epochStart is one entry: the leader of Epoch wrote from Start on.
type epochStart struct {
	epoch int32
	start int64
}

// epochList is a list of entries in order. Its methods leave the receiver as it is.
type epochList []epochStart

// assign adds an entry and drops those that contradict it: same or later epochs, and starts at or behind the new one.
func (e epochList) assign(epoch int32, start int64) (epochList, bool) {
	if n := len(e); n > 0 && e[n-1].epoch == epoch && e[n-1].start <= start {
		return e, false
	}
	keep := len(e)
	for keep > 0 && (e[keep-1].epoch >= epoch || e[keep-1].start >= start) {
		keep--
	}
	return append(e[:keep:keep], epochStart{epoch, start}), true
}

// follow is assign for a batch that a leader sent. An epoch below the newest is taken only if the newer ones have
// written nothing: a leader that wrote nothing leaves an entry at its log's end (H06).
func (e epochList) follow(epoch int32, base int64) (epochList, bool, error) {
	if epoch < 0 {
		return e, false, nil
	}
	list, cut := e.cutEmpty(epoch, base)
	if latest, ok := list.latest(); ok && latest > epoch {
		return e, false, fmt.Errorf("epoch %d at offset %d follows epoch %d from %d", epoch, base, latest, list[len(list)-1].start)
	}
	list, changed := list.assign(epoch, base)
	return list, cut || changed, nil
}

// cutEmpty drops entries above epoch that start at or behind base.
func (e epochList) cutEmpty(epoch int32, base int64) (epochList, bool) {
	keep := len(e)
	for keep > 0 && e[keep-1].epoch > epoch && e[keep-1].start >= base {
		keep--
	}
	return e[:keep:keep], keep < len(e)
}

// cutEnd drops the entries that start at or behind end.
func (e epochList) cutEnd(end int64) (epochList, bool) {
	keep := len(e)
	for keep > 0 && e[keep-1].start >= end {
		keep--
	}
	return e[:keep:keep], keep < len(e)
}

// cutStart drops the entries that end before start; the one that start lies in begins there now.
func (e epochList) cutStart(start int64) (epochList, bool) {
	first := sort.Search(len(e), func(i int) bool { return e[i].start > start })
	if first == 0 || first == 1 && e[0].start == start {
		return e, false
	}
	return append(epochList{{e[first-1].epoch, start}}, e[first:]...), true
}

// endOf answers OffsetsForLeaderEpoch (KIP-279): the largest epoch not above the asked one and where the next begins.
func (e epochList) endOf(epoch int32, logEnd int64) (int32, int64) {
	if epoch == undefinedEpoch || len(e) == 0 {
		return undefinedEpoch, -1
	}
	if e[len(e)-1].epoch == epoch {
		return epoch, logEnd
	}
	higher := sort.Search(len(e), func(i int) bool { return e[i].epoch > epoch })
	switch higher {
	case len(e):
		return undefinedEpoch, -1
	case 0:
		// All that the asked epoch wrote is gone: the follower may go on from the first that is left.
		return epoch, e[0].start
	}
	return e[higher-1].epoch, e[higher].start
}

// at returns the epoch that wrote offset.
func (e epochList) at(offset int64) (int32, bool) {
	next := sort.Search(len(e), func(i int) bool { return e[i].start > offset })
	if next == 0 {
		return undefinedEpoch, false
	}
	return e[next-1].epoch, true
}

func (e epochList) latest() (int32, bool) {
	if len(e) == 0 {
		return undefinedEpoch, false
	}
	return e[len(e)-1].epoch, true
}

// encode gives the content of leader-epoch-checkpoint.
func (e epochList) encode() []byte {
	out := fmt.Appendf(nil, "%d\n%d\n", checkpointVersion, len(e))
	for _, entry := range e {
		out = fmt.Appendf(out, "%d %d\n", entry.epoch, entry.start)
	}
	return out
}

func parseEpochs(data []byte) (epochList, error) {
	var list epochList
	err := parseCheckpoint(data, func(fields []string) error {
		if len(fields) != 2 {
			return errors.New("want epoch and start offset")
		}
		epoch, err := strconv.ParseInt(fields[0], 10, 32)
		if err != nil || epoch < 0 {
			return fmt.Errorf("bad epoch %q", fields[0])
		}
		start, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || start < 0 {
			return fmt.Errorf("bad start offset %q", fields[1])
		}
		if n := len(list); n > 0 && (list[n-1].epoch >= int32(epoch) || list[n-1].start >= start) {
			return fmt.Errorf("epoch %d from %d follows epoch %d from %d", epoch, start, list[n-1].epoch, list[n-1].start)
		}
		list = append(list, epochStart{int32(epoch), start})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// readEpochs reads a partition's leader-epoch-checkpoint; an absent one is empty.
func readEpochs(f vfs.FS, dir string) (epochList, error) {
	path := filepath.Join(dir, epochFile)
	data, err := readSmallFile(f, path, maxCheckpointBytes)
	if err != nil || data == nil {
		return nil, err
	}
	list, err := parseEpochs(data)
	if err != nil {
		return nil, corruptAt(path, -1, "%v", err)
	}
	return list, nil
}

// epochCache holds a log's entries and brings them to disk. Readers load the list; changes are made by one at a time,
// who holds the log's appender lock. Writing the file has a lock of its own, so that no append waits for an fsync.
type epochCache struct {
	list  atomic.Pointer[epochList]
	dirty atomic.Bool
	write sync.Mutex // held while the file is written
}

func (c *epochCache) load() epochList {
	if p := c.list.Load(); p != nil {
		return *p
	}
	return nil
}

func (c *epochCache) set(list epochList, changed bool) {
	if changed {
		c.list.Store(&list)
		c.dirty.Store(true)
	}
}

// flush writes the file if the list changed since it was last written.
func (c *epochCache) flush(f vfs.FS, dir string) error {
	if !c.dirty.Load() {
		return nil
	}
	c.write.Lock()
	defer c.write.Unlock()
	if !c.dirty.Swap(false) {
		return nil
	}
	if err := replaceFile(f, dir, epochFile, c.load().encode()); err != nil {
		c.dirty.Store(true)
		return err
	}
	return nil
}

// leave writes the file of a log that was never used, if the list changed. It is not synced: after a power cut it may be
// broken or absent, and describes nothing that is there.
func (c *epochCache) leave(f vfs.FS, dir string) error {
	c.write.Lock()
	defer c.write.Unlock()
	if !c.dirty.Swap(false) {
		return nil
	}
	h, err := f.OpenFile(filepath.Join(dir, epochFile), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(h.Append(c.load().encode()), h.Close())
}
