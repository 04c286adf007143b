package broker

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"barnabas/broker/commitlog"
	"barnabas/broker/vfs"
	"barnabas/config"
	"barnabas/zkstate"
)

// identity is who this broker is, and in which cluster. ZooKeeper, the configuration and each log directory's meta.properties must agree; where they do not, the broker refuses to
// start and changes nothing, as one of the two would be taken for another.
type identity struct {
	brokerID  int32
	clusterID string
}

// newClusterID makes an id as Kafka's are: 16 random bytes in URL-safe base64. One that begins with a dash would be taken for an option by command line tools.
func newClusterID() string {
	for {
		var id [16]byte
		_, _ = rand.Read(id[:]) // never fails
		if text := base64.RawURLEncoding.EncodeToString(id[:]); !strings.HasPrefix(text, "-") {
			return text
		}
	}
}

// establish reads and checks the identity. A directory that cannot be read is left to the log manager, which takes it offline.
func establish(ctx context.Context, zk *zkstate.Client, v *config.Values, fs vfs.FS) (identity, error) {
	clusterID, err := zk.JoinCluster(ctx, newClusterID())
	if err != nil {
		return identity{}, err
	}
	id := identity{brokerID: int32(v.Int("broker.id")), clusterID: clusterID}
	storedID, storedIn := int32(-1), ""
	for _, dir := range v.LogDirs() {
		meta, found, err := commitlog.ReadMeta(fs, dir)
		if err != nil || !found {
			continue
		}
		if meta.Version != 0 {
			return identity{}, fmt.Errorf("%s/meta.properties has version %d: the directory belongs to a broker in KRaft mode, and this one runs on ZooKeeper; give it another log.dirs", dir, meta.Version)
		}
		if meta.ClusterID != "" && meta.ClusterID != clusterID {
			return identity{}, fmt.Errorf("%s belongs to cluster %s (its meta.properties), but ZooKeeper at %s is of cluster %s; point zookeeper.connect at the right one, or give this broker another log.dirs",
				dir, meta.ClusterID, v.String("zookeeper.connect"), clusterID)
		}
		if !meta.HasBrokerID {
			continue
		}
		if storedIn != "" && meta.BrokerID != storedID {
			return identity{}, fmt.Errorf("%s belongs to broker %d and %s to broker %d (their meta.properties); the directories of log.dirs must be of one broker", storedIn, storedID, dir, meta.BrokerID)
		}
		storedID, storedIn = meta.BrokerID, dir
	}
	switch {
	case storedIn == "" && id.brokerID >= 0:
	case storedIn == "":
		next, err := zk.NextBrokerSequence(ctx)
		if err != nil {
			return identity{}, fmt.Errorf("generating a broker id: %w", err)
		}
		id.brokerID = int32(v.Int("reserved.broker.max.id")) + next
	case id.brokerID < 0:
		id.brokerID = storedID
	case id.brokerID != storedID:
		return identity{}, fmt.Errorf("broker.id is %d in the configuration, but %s belongs to broker %d (its meta.properties); use broker.id=%d, or give this broker another log.dirs", id.brokerID, storedIn, storedID, storedID)
	}
	return id, nil
}

// absolute makes directories absolute, as tools name them that ask for a replica to be in one.
func absolute(dirs []string) []string {
	out := slices.Clone(dirs)
	for i, dir := range dirs {
		if path, err := filepath.Abs(dir); err == nil {
			out[i] = path
		}
	}
	return out
}

// prepareDirs creates missing log directories, and says so in words for people when it cannot.
func prepareDirs(dirs []string) error {
	var failed error
	usable := 0
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			failed = fmt.Errorf("the log directory %s cannot be made: %w", dir, err)
			continue
		}
		usable++
	}
	if usable == 0 {
		return failed
	}
	return nil
}

// writeMeta stores the identity in every directory that does not have it yet.
func writeMeta(fs vfs.FS, dirs []commitlog.DirInfo, id identity) error {
	for _, dir := range dirs {
		if dir.Err != nil {
			continue
		}
		meta, found, err := commitlog.ReadMeta(fs, dir.Path)
		if err != nil {
			return err
		}
		if found && meta.HasBrokerID && meta.ClusterID == id.clusterID {
			continue
		}
		meta.Version, meta.BrokerID, meta.HasBrokerID, meta.ClusterID = 0, id.brokerID, true, id.clusterID
		if err := commitlog.WriteMeta(fs, dir.Path, meta); err != nil {
			return err
		}
	}
	return nil
}
