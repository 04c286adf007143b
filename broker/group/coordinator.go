package group

import (
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"barnabas/broker/coordinator"
	"barnabas/broker/record"
)

// Config is what a Coordinator needs to know.
type Config struct {
	Core CoreConfig // NewID nil: random UUIDs

	MinSessionTimeoutMs int32 // group.min.session.timeout.ms
	MaxSessionTimeoutMs int32 // group.max.session.timeout.ms

	// ExpiryCheck is offsets.retention.check.interval.ms.
	ExpiryCheck time.Duration

	// Codec of the batches that are written (offsets.topic.compression.codec).
	Codec  record.Codec
	Limits record.Limits

	// Partitions is how many partitions the offsets topic has, or would have if it
	// existed.
	Partitions func() (count int32, exists bool)

	Now func() time.Time
	Log *logrus.Entry
}

type shell = coordinator.Shell[*Core]

// Coordinator is the cores of all offsets partitions that this broker leads, in
// their shell. Requests are answered through the reply function, exactly once,
// from any goroutine.
type Coordinator struct {
	*shell
	cfg Config
}

// New returns a Coordinator that leads nothing yet.
func New(cfg Config, topic coordinator.Topic) *Coordinator {
	if cfg.Core.NewID == nil {
		cfg.Core.NewID = uuid.NewString
	}
	c := &Coordinator{cfg: cfg, shell: coordinator.New(coordinator.Config[*Core]{
		NewCore:    func(int32) *Core { return NewCore(cfg.Core) },
		NewLoader:  func() coordinator.Loader[*Core] { return NewLoader(cfg.Limits) },
		Take:       func(_ *coordinator.Shard[*Core], core *Core) coordinator.Effects { return core.Take() },
		Partitions: cfg.Partitions, Codec: cfg.Codec, Now: cfg.Now, Log: cfg.Log,
	}, topic)}
	c.Every(cfg.ExpiryCheck, (*Core).Expire)
	return c
}
