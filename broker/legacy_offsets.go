package broker

import (
	"context"
	"errors"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/zkstate"
)

// legacyOffsets keeps offsets of clients from before Kafka 0.9 in ZooKeeper. It implements api.LegacyOffsets.
type legacyOffsets struct{ zk *zkstate.Client }

// Commit writes an offset, making the nodes above it if they are missing.
func (l legacyOffsets) Commit(ctx context.Context, name, topic string, partition int32, offset int64) error {
	path, err := legacyPath(name, topic, partition)
	if err != nil {
		return err
	}
	data := zkstate.EncodeConsumerOffset(offset)
	set := func() error {
		_, err := l.zk.One(ctx, zkstate.Set(path, data, -1))
		return err
	}
	if err := set(); !errors.Is(err, zkstate.ErrNoNode) {
		return err
	}
	if err := l.zk.CreateRecursive(ctx, path, data); err != nil {
		return err
	}
	return set() // somebody else may have made it
}

// Fetch reads an offset. What is no number counts as none.
func (l legacyOffsets) Fetch(ctx context.Context, name, topic string, partition int32) (int64, bool, error) {
	path, err := legacyPath(name, topic, partition)
	if err != nil {
		return 0, false, err
	}
	r, err := l.zk.One(ctx, zkstate.Get(path))
	if errors.Is(err, zkstate.ErrNoNode) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	offset, err := zkstate.DecodeConsumerOffset(r.Data)
	return offset, err == nil, nil
}

// legacyPath refuses names of groups that would be another path.
func legacyPath(name, topic string, partition int32) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", kerr.InvalidGroupID
	}
	return zkstate.ConsumerOffsetPath(name, topic, partition), nil
}
