package commitlog

// Small files that must be whole or absent: offset checkpoints, leader epochs, partition.metadata, meta.properties,
// producer snapshots. Each is written beside its place, synced, renamed over the old one, and the directory is synced:
// after a power cut there is the old file or the new one, never a mixture (H07).

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"barnabas/broker/vfs"
)

// The names of the checkpoints in a log directory.
const (
	recoveryPointFile  = "recovery-point-offset-checkpoint"
	startOffsetFile    = "log-start-offset-checkpoint"
	highWatermarkFile  = "replication-offset-checkpoint"
	cleanerOffsetFile  = "cleaner-offset-checkpoint"
	temporarySuffix    = ".tmp"
	checkpointVersion  = 0
	maxCheckpointBytes = 64 << 20
)

// replaceFile puts data in the place of dir/name.
func replaceFile(f vfs.FS, dir, name string, data []byte) error {
	path := filepath.Join(dir, name)
	tmp, err := f.OpenFile(path+temporarySuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	err = tmp.Append(data)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := f.Rename(path+temporarySuffix, path); err != nil {
		return err
	}
	return f.SyncDir(dir)
}

// readSmallFile returns the content of a file of at most limit bytes, and nil when there is no such file.
func readSmallFile(f vfs.FS, path string, limit int64) ([]byte, error) {
	h, err := f.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer h.Close()
	size := h.Size()
	if size > limit {
		return nil, corruptAt(path, -1, "%d bytes are too many", size)
	}
	data := make([]byte, size)
	if n, err := h.ReadAt(data, 0); n < len(data) {
		return nil, fmt.Errorf("%s: %w", path, shortRead(err))
	}
	return data, nil
}

// shortRead is the error of a read that gave less than the file is known to hold.
func shortRead(err error) error {
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// appendOffsetCheckpoint encodes a checkpoint of offsets: the version, the number of entries, then "topic partition offset"
// lines. Kafka writes them in no order; we sort, so that equal states are equal files.
func appendOffsetCheckpoint(dst []byte, offsets map[TopicPartition]int64) []byte {
	tps := slices.SortedFunc(maps.Keys(offsets), TopicPartition.compare)
	dst = fmt.Appendf(dst, "%d\n%d\n", checkpointVersion, len(tps))
	for _, tp := range tps {
		dst = fmt.Appendf(dst, "%s %d %d\n", tp.Topic, tp.Partition, offsets[tp])
	}
	return dst
}

// parseOffsetCheckpoint reads what appendOffsetCheckpoint and Kafka write.
func parseOffsetCheckpoint(data []byte) (map[TopicPartition]int64, error) {
	offsets := map[TopicPartition]int64{}
	err := parseCheckpoint(data, func(fields []string) error {
		if len(fields) != 3 {
			return errors.New("want topic, partition and offset")
		}
		p, err := strconv.ParseInt(fields[1], 10, 32)
		if err != nil || p < 0 {
			return fmt.Errorf("bad partition %q", fields[1])
		}
		o, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || o < 0 {
			return fmt.Errorf("bad offset %q", fields[2])
		}
		offsets[TopicPartition{fields[0], int32(p)}] = o
		return nil
	})
	if err != nil {
		return nil, err
	}
	return offsets, nil
}

// parseCheckpoint reads the frame that all of Kafka's text checkpoints share and hands each line's fields to entry.
func parseCheckpoint(data []byte, entry func(fields []string) error) error {
	lines := strings.Split(string(bytes.TrimRight(data, "\n")), "\n")
	if len(lines) < 2 {
		return errors.New("no version and number of entries")
	}
	if v, err := strconv.Atoi(strings.TrimSpace(lines[0])); err != nil || v != checkpointVersion {
		return fmt.Errorf("unknown version %q", lines[0])
	}
	n, err := strconv.Atoi(strings.TrimSpace(lines[1]))
	if err != nil || n != len(lines)-2 {
		return fmt.Errorf("%q entries announced, %d found", lines[1], len(lines)-2)
	}
	for i, line := range lines[2:] {
		if err := entry(strings.Fields(line)); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return nil
}

// readOffsetCheckpoint reads a checkpoint of a log directory; an absent one is empty, and so is one without a byte: Kafka makes its files before it has anything to write.
func readOffsetCheckpoint(f vfs.FS, dir, name string) (map[TopicPartition]int64, error) {
	path := filepath.Join(dir, name)
	data, err := readSmallFile(f, path, maxCheckpointBytes)
	if err != nil || len(data) == 0 {
		return map[TopicPartition]int64{}, err
	}
	offsets, err := parseOffsetCheckpoint(data)
	if err != nil {
		return map[TopicPartition]int64{}, corruptAt(path, -1, "%v", err)
	}
	return offsets, nil
}

func removeIfThere(f vfs.FS, path string) error {
	err := f.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
