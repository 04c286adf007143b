package tools

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// mirrorStream is one of the consumers of a mirror. No partition is taken from it between its reading records and its having sent them.
type mirrorStream struct {
	m       *mirror
	source  *kgo.Client
	perPoll int

	mu        sync.Mutex
	read      map[string]map[int32]kgo.EpochOffset // what is to be committed when the target has it
	committed time.Time
}

func newMirrorStream(m *mirror, settings map[string]string, topics []kgo.Opt) (*mirrorStream, error) {
	s := &mirrorStream{m: m, read: map[string]map[int32]kgo.EpochOffset{}, committed: time.Now()}
	opts, err := consumerOptions(settings)
	if err != nil {
		return nil, err
	}
	if s.perPoll, err = recordsPerPoll(settings); err != nil {
		return nil, err
	}
	opts = append(opts, topics...)
	opts = append(opts, kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsRevoked(func(context.Context, *kgo.Client, map[string][]int32) { _ = s.commit() }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { s.forget(lost) }))
	s.source, err = m.f.connect(settings, opts...)
	return s, err
}

// run copies until the context ends, and then commits what was copied.
func (s *mirrorStream) run(ctx context.Context) error {
	const idle = time.Second // after which it is seen whether offsets are to be committed
	for ctx.Err() == nil && s.m.aborted() == nil {
		waiting, cancel := context.WithTimeout(ctx, idle)
		fetches := s.source.PollRecords(waiting, s.perPoll)
		cancel()
		s.copy(fetches)
		err := hopeless(fetches)
		if err == nil && s.due() {
			err = s.commit()
		}
		s.source.AllowRebalance()
		if err != nil {
			return err
		}
	}
	return s.commit()
}

// copy sends what was read.
func (s *mirrorStream) copy(fetches kgo.Fetches) {
	if fetches.NumRecords() == 0 {
		return
	}
	ctx, cancel := s.m.limit()
	var left atomic.Int64
	left.Store(int64(fetches.NumRecords()))
	done := func() {
		if left.Add(-1) == 0 {
			cancel()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for records := fetches.RecordIter(); !records.Done(); {
		r := records.Next()
		s.m.send(ctx, r, done)
		if s.read[r.Topic] == nil {
			s.read[r.Topic] = map[int32]kgo.EpochOffset{}
		}
		s.read[r.Topic][r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
	}
}

func (s *mirrorStream) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.committed) > s.m.interval
}

// commit waits until the target has all that was read, and commits that. A commit that fails is no fault: what it is about is committed with the next one, or read again.
func (s *mirrorStream) commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.committed = time.Now()
	if len(s.read) == 0 {
		return s.m.aborted()
	}
	if err := s.m.taken(); err != nil {
		return err
	}
	var failed error
	s.source.CommitOffsetsSync(context.Background(), s.read, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		failed = commitFault(resp, err)
	})
	switch {
	case failed == nil:
		clear(s.read)
	case errors.Is(failed, kerr.FencedInstanceID):
		return failed
	default:
		fmt.Fprintf(s.m.f.stderr, "%sFailed to commit offsets: %s (%s)\n", s.m.f.logLine("WARN"), described(failed), s.m.f.class)
	}
	return nil
}

// forget drops what was read of partitions that others have got meanwhile.
func (s *mirrorStream) forget(lost map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, ids := range lost {
		for _, id := range ids {
			delete(s.read[topic], id)
		}
		if len(s.read[topic]) == 0 {
			delete(s.read, topic)
		}
	}
}
