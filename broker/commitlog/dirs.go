package commitlog

// Files that say whose a directory is and how it was left: meta.properties, the marker of a clean shutdown, and
// partition.metadata.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"barnabas/broker/vfs"
)

const (
	metaFile              = "meta.properties"
	cleanShutdownFile     = ".kafka_cleanshutdown"
	lockFile              = ".lock"
	partitionMetadataFile = "partition.metadata"
	maxSmallFile          = 1 << 20
	noBrokerEpoch         = -1
)

// Meta is the content of meta.properties, version 0 (a broker that uses ZooKeeper).
type Meta struct {
	Version     int
	BrokerID    int32
	HasBrokerID bool
	ClusterID   string
	Extra       map[string]string // keys that this version does not know, kept when rewritten
}

// ReadMeta reads meta.properties of a log directory; false when there is none.
func ReadMeta(f vfs.FS, dir string) (Meta, bool, error) {
	path := filepath.Join(dir, metaFile)
	data, err := readSmallFile(f, path, maxSmallFile)
	if err != nil || data == nil {
		return Meta{}, false, err
	}
	m, err := parseMeta(data)
	if err != nil {
		return Meta{}, true, corruptAt(path, -1, "%v", err)
	}
	return m, true, nil
}

// WriteMeta replaces meta.properties of a log directory.
func WriteMeta(f vfs.FS, dir string, m Meta) error {
	return replaceFile(f, dir, metaFile, m.encode(time.Now()))
}

func parseMeta(data []byte) (Meta, error) {
	m := Meta{}
	for _, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(unescapeProperty(value))
		switch key {
		case "version":
			v, err := strconv.Atoi(value)
			if err != nil {
				return m, fmt.Errorf("version %q is no number", value)
			}
			m.Version = v
		case "broker.id":
			id, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				return m, fmt.Errorf("broker.id %q is no number", value)
			}
			m.BrokerID, m.HasBrokerID = int32(id), true
		case "cluster.id":
			m.ClusterID = value
		default:
			if m.Extra == nil {
				m.Extra = map[string]string{}
			}
			m.Extra[key] = value
		}
	}
	return m, nil
}

// unescapeProperty undoes what Java's Properties.store does to characters that could end a key.
func unescapeProperty(s string) string { return strings.ReplaceAll(s, `\`, "") }

func (m Meta) encode(now time.Time) []byte {
	out := []byte("#\n#" + now.UTC().Format("Mon Jan 02 15:04:05 UTC 2006") + "\n")
	if m.HasBrokerID {
		out = fmt.Appendf(out, "broker.id=%d\n", m.BrokerID)
	}
	out = fmt.Appendf(out, "version=%d\n", m.Version)
	if m.ClusterID != "" {
		out = fmt.Appendf(out, "cluster.id=%s\n", m.ClusterID)
	}
	keys := make([]string, 0, len(m.Extra))
	for k := range m.Extra {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		out = fmt.Appendf(out, "%s=%s\n", k, m.Extra[k])
	}
	return out
}

// cleanShutdown is the content of .kafka_cleanshutdown as Kafka 3.7 and later write it; before, the file was empty.
type cleanShutdown struct {
	Version     int   `json:"version"`
	BrokerEpoch int64 `json:"brokerEpoch"`
}

// takeCleanShutdown looks for the marker and removes it, durably, before anything is loaded: a crash while loading must
// not find it (H44). Any content means that the shutdown was clean.
func takeCleanShutdown(f vfs.FS, dir string) (clean bool, err error) {
	err = f.Remove(filepath.Join(dir, cleanShutdownFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, f.SyncDir(dir)
}

func writeCleanShutdown(f vfs.FS, dir string, epoch int64) error {
	data, err := json.Marshal(cleanShutdown{BrokerEpoch: epoch})
	if err != nil {
		return err
	}
	return replaceFile(f, dir, cleanShutdownFile, data)
}

func encodePartitionMetadata(id TopicID) []byte {
	return []byte("version: 0\ntopic_id: " + id.String())
}

// parsePartitionMetadata reads partition.metadata.
func parsePartitionMetadata(data []byte) (TopicID, error) {
	var id TopicID
	seen := false
	for i, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		key, value, found := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !found:
			return id, fmt.Errorf("line %d is no pair", i+1)
		case key == "version":
			if value != "0" {
				return id, fmt.Errorf("unknown version %q", value)
			}
		case key == "topic_id":
			parsed, err := parseTopicID(value)
			if err != nil {
				return id, err
			}
			if parsed.IsZero() {
				return id, errors.New("topic id is zero")
			}
			id, seen = parsed, true
		}
	}
	if !seen {
		return id, errors.New("no topic_id")
	}
	return id, nil
}

// readPartitionMetadata returns the topic id of a partition's directory, zero when it has none.
func readPartitionMetadata(f vfs.FS, dir string) (TopicID, error) {
	path := filepath.Join(dir, partitionMetadataFile)
	data, err := readSmallFile(f, path, maxSmallFile)
	if err != nil || len(data) == 0 {
		return TopicID{}, err // empty: a crash came before the log's creation was synced
	}
	id, err := parsePartitionMetadata(data)
	if err != nil {
		return TopicID{}, corruptAt(path, -1, "%v", err)
	}
	return id, nil
}
