package admin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/config/secret"
	"barnabas/zkstate"
)

// Config is what an Admin needs to know.
type Config struct {
	BrokerID                 int32 // of the broker that serves the requests; -1 in a tool, which may name any broker
	DefaultPartitions        int32 // num.partitions
	DefaultReplicationFactor int16 // default.replication.factor
	TopicIDs                 bool  // inter.broker.protocol.version 2.8 or later: new topics get an id
	DeleteTopics             bool  // delete.topic.enable
	Table                    ConfigTable
	// Passwords encrypts the passwords among dynamic settings; nil: there is no secret, and none can be set.
	Passwords *secret.Encoder
	// Judge tells whether the broker could live with other dynamic settings: its own, or the default of all. Passwords are in the clear, and
	// are not to be told in the error. nil: there is no broker.
	Judge func(defaults bool, set map[string]string) error
	Intn  func(n int) int // random in [0, n): where assignments begin; default math/rand
	Log   *logrus.Entry
}

// Admin administers the cluster behind a ZooKeeper client. It keeps no state: every request looks at the tree.
type Admin struct {
	cfg Config
	zk  *zkstate.Client
}

// New makes an Admin.
func New(cfg Config, zk *zkstate.Client) *Admin {
	if cfg.Intn == nil {
		cfg.Intn = rand.IntN
	}
	return &Admin{cfg: cfg, zk: zk}
}

// Brokers lists the brokers that are registered, by id.
func (a *Admin) Brokers(ctx context.Context) ([]BrokerRack, error) {
	r, err := a.zk.One(ctx, zkstate.Children(zkstate.BrokerIDsPath))
	if errors.Is(err, zkstate.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the brokers: %w", err)
	}
	var ids []int32
	var reads []zkstate.Op
	for _, name := range r.Children {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			continue // not a broker's
		}
		ids = append(ids, int32(id))
	}
	slices.Sort(ids)
	for _, id := range ids {
		reads = append(reads, zkstate.Get(zkstate.BrokerIDPath(id)))
	}
	results, err := a.zk.Do(ctx, reads)
	if err != nil {
		return nil, fmt.Errorf("reading the brokers: %w", err)
	}
	var brokers []BrokerRack
	for i, r := range results {
		if errors.Is(r.Err, zkstate.ErrNoNode) {
			continue // went meanwhile
		}
		if r.Err != nil {
			return nil, fmt.Errorf("reading broker %d: %w", ids[i], r.Err)
		}
		b, err := zkstate.DecodeBroker(ids[i], r.Data)
		if err != nil {
			continue // what is no registration is no broker: the controller, which ignores it too, says so
		}
		brokers = append(brokers, BrokerRack{ID: b.ID, Rack: b.Rack})
	}
	return brokers, nil
}

// exists tells whether a node is there.
func (a *Admin) exists(ctx context.Context, path string) (bool, error) {
	_, err := a.zk.One(ctx, zkstate.Exists(path))
	if errors.Is(err, zkstate.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// unavailable turns a failure to reach ZooKeeper into an answer that makes clients try again; what has a code keeps it.
func unavailable(err error) error {
	var coded *kerr.Error
	if err == nil || errors.As(err, &coded) {
		return err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, zkstate.ErrConnectionLoss):
		return failed(kerr.RequestTimedOut, "ZooKeeper did not answer in time: %v", err)
	case errors.Is(err, zkstate.ErrSessionExpired), errors.Is(err, zkstate.ErrClosed):
		return failed(kerr.NotController, "The session with ZooKeeper ended: %v", err)
	}
	return fmt.Errorf("administering through ZooKeeper: %w", err)
}
