package commitlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// Scripts under testdata/scripts tell the behaviour of a log in text: a line that begins in the first column is a command,
// indented lines below it are what it answered. A change of behaviour is a diff of these files; with BARNABAS_UPDATE=1 they
// are written anew.
//
//	open segment.bytes=N ..     open the manager (also after close or crash)
//	append [count=] [size=] [ts=] [pid= seq= epoch= txn] [leader=]
//	marker commit|abort pid=    end a transaction
//	follow base= leader= ..     append as a follower
//	read FROM UPTO              offsets of the batches that a reader gets
//	time T, epoch E O, epochs E.., high N, start N, truncate N, restart N, roll, flush, background, retention, wait MS
//	log                         where the log stands
//	files                       names and sizes in the partition's directory
//	ops                         what was done to the disk since the last ops, in order
//	close, crash                crash: the power is cut, nothing survives but what was synced
type script struct {
	t     *testing.T
	fs    *vfs.CrashFS
	clock *clock
	m     *Manager
	log   *Log
	seen  int
	c     Config
}

func TestScripts(t *testing.T) {
	found, err := filepath.Glob("testdata/scripts/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, path := range found {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			s := &script{t: t, fs: vfs.NewCrashFS(), clock: newClock(), c: smallConfig()}
			var out strings.Builder
			for _, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
				if strings.HasPrefix(line, "  ") {
					continue
				}
				fmt.Fprintln(&out, line)
				if line == "" || line[0] == '#' {
					continue
				}
				words := strings.Fields(line)
				for _, answer := range s.run(words[0], words[1:]) {
					fmt.Fprintln(&out, "  "+answer)
				}
			}
			if s.m != nil {
				require.NoError(t, s.m.Close())
			}
			if os.Getenv("BARNABAS_UPDATE") == "1" {
				require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
				return
			}
			require.Equal(t, string(data), out.String())
		})
	}
}

// options reads name=value words; a bare word is "1".
type options map[string]string

func readOptions(words []string) options {
	o := options{}
	for _, w := range words {
		name, value, found := strings.Cut(w, "=")
		if !found {
			value = "1"
		}
		o[name] = value
	}
	return o
}

func (o options) int(name string, otherwise int64) int64 {
	if o[name] == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(o[name], 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func (s *script) run(command string, args []string) []string {
	o := readOptions(args)
	number := func(i int) int64 {
		n, err := strconv.ParseInt(args[i], 10, 64)
		require.NoError(s.t, err)
		return n
	}
	switch command {
	case "open":
		return s.open(o)
	case "close":
		err := s.m.Close()
		s.m = nil
		return failure(err)
	case "crash":
		s.fs = s.fs.Image(s.fs.Ops(), vfs.Synced, 1)
		require.NoError(s.t, s.m.Close())
		s.m, s.seen = nil, 0
	case "append":
		info, err := s.log.AppendAsLeader(s.batch(o), int32(o.int("leader", 0)), AppendOptions{RequireV2: true})
		return appended(info, err)
	case "marker":
		typ := record.Commit
		if o["abort"] != "" {
			typ = record.Abort
		}
		b := record.NewEndTxnBatch(record.EndTxnMarker{Type: typ}, o.int("pid", 0), 0, s.clock.at.UnixMilli())
		info, err := s.log.AppendAsLeader(b, int32(o.int("leader", 0)), AppendOptions{Origin: Coordinator})
		return appended(info, err)
	case "follow":
		b := record.Batch(s.batch(o))
		b.SetBaseOffset(o.int("base", 0))
		b.SetPartitionLeaderEpoch(int32(o.int("leader", 0)))
		info, err := s.log.AppendAsFollower(b)
		return appended(info, err)
	case "read":
		return s.read(number(0), number(1))
	case "time":
		offset, ts, epoch, found, err := s.log.OffsetForTimestamp(number(0))
		return append(failure(err), fmt.Sprintf("offset %d time %d epoch %d found %v", offset, ts, epoch, found))
	case "epoch":
		return failure(s.log.AssignEpochStart(int32(number(0)), number(1)))
	case "epochs":
		var out []string
		for i := range args {
			epoch, end := s.log.EndOffsetForEpoch(int32(number(i)))
			out = append(out, fmt.Sprintf("epoch %d: %d ends at %d", number(i), epoch, end))
		}
		return out
	case "high":
		return []string{fmt.Sprint(s.log.SetHighWatermark(number(0)))}
	case "start":
		moved, err := s.log.AdvanceStartOffset(number(0), "script")
		return append(failure(err), fmt.Sprintf("moved %v", moved))
	case "truncate":
		return failure(s.log.TruncateTo(number(0)))
	case "restart":
		return failure(s.log.TruncateFullyAndStartAt(number(0), -1))
	case "roll":
		return failure(roll(s.log))
	case "flush":
		return failure(s.log.Flush())
	case "background":
		for _, d := range s.m.dirs {
			d.flusher.work(false)
		}
		s.m.checkpointRecoveryPoints()
		s.m.checkpointStartOffsets()
		s.m.CheckpointHighWatermarks()
		s.m.removeDue(s.clock.at)
	case "retention":
		s.m.applyRetention(s.clock.at)
	case "wait":
		s.clock.advance(time.Duration(number(0)) * time.Millisecond)
	case "log":
		return s.state()
	case "files":
		return s.files()
	case "ops":
		return s.ops()
	default:
		s.t.Fatalf("unknown command %q", command)
	}
	return nil
}

func (s *script) open(o options) []string {
	s.c.SegmentBytes = int32(o.int("segment.bytes", int64(s.c.SegmentBytes)))
	s.c.SegmentMs = o.int("segment.ms", s.c.SegmentMs)
	s.c.RetentionMs = o.int("retention.ms", s.c.RetentionMs)
	s.c.RetentionBytes = o.int("retention.bytes", s.c.RetentionBytes)
	s.c.IndexInterval = int32(o.int("index.interval.bytes", int64(s.c.IndexInterval)))
	s.c.SegmentIndexBytes = int32(o.int("segment.index.bytes", int64(s.c.SegmentIndexBytes)))
	m, err := load(still(ManagerConfig{FS: s.fs, Dirs: []string{"/data"}, Default: s.c}, s.clock))
	require.NoError(s.t, err)
	s.m = m
	s.log, err = m.GetOrCreate(tp0, TopicID{}, false)
	return failure(err)
}

func (s *script) batch(o options) []byte {
	return batchSpec{
		count: int(o.int("count", 1)), size: int(o.int("size", 10)), ts: o.int("ts", 1000), step: o.int("step", 0),
		pid: o.int("pid", 0), seq: int32(o.int("seq", 0)), epoch: int16(o.int("epoch", 0)), txn: o["txn"] != "",
	}.build(s.t)
}

func failure(err error) []string {
	if err == nil {
		return nil
	}
	for _, known := range []*kerr.Error{
		kerr.OffsetOutOfRange, kerr.OutOfOrderSequenceNumber, kerr.InvalidProducerEpoch, kerr.FencedLeaderEpoch,
		kerr.InvalidTxnState, kerr.KafkaStorageError, kerr.CorruptMessage,
	} {
		if strings.HasPrefix(err.Error(), known.Message) {
			return []string{known.Message}
		}
	}
	return []string{err.Error()}
}

func appended(info AppendInfo, err error) []string {
	if err != nil {
		return failure(err)
	}
	text := fmt.Sprintf("%d-%d, end in segment %d at %d", info.FirstOffset, info.LastOffset, info.End.SegmentBase, info.End.SegmentPos)
	if info.Duplicate {
		text = fmt.Sprintf("%d-%d again", info.FirstOffset, info.LastOffset)
	}
	return []string{text}
}

func (s *script) read(from, upTo int64) []string {
	r, err := s.log.Read(from, ReadOptions{MaxBytes: 1 << 20, UpTo: upTo})
	if err != nil {
		return failure(err)
	}
	data, err := r.Range.ReadAll()
	require.NoError(s.t, err)
	r.Range.Release()
	out := []string{fmt.Sprintf("%d bytes from segment %d at %d", r.Bytes, r.StartPos.SegmentBase, r.StartPos.SegmentPos)}
	for len(data) > 0 {
		b, rest, err := record.Next(data)
		require.NoError(s.t, err)
		out = append(out, fmt.Sprintf("%d-%d epoch %d", b.BaseOffset(), b.LastOffset(), b.PartitionLeaderEpoch()))
		data = rest
	}
	return out
}

func (s *script) state() []string {
	l := s.log
	out := []string{fmt.Sprintf("start %d, stable %d, high %d, end %d, recovery point %d, segments %d",
		l.StartOffset(), l.LastStableOffset(), l.HighWatermark(), l.EndOffset(), l.RecoveryPoint(), l.Segments())}
	for _, e := range l.epochs.load() {
		out = append(out, fmt.Sprintf("epoch %d from %d", e.epoch, e.start))
	}
	for _, p := range l.ProducerStates() {
		out = append(out, fmt.Sprintf("producer %d: epoch %d, sequence %d, transaction from %d", p.ProducerID, p.Epoch, p.LastSequence, p.TxnStartOffset))
	}
	aborted, err := abortedNow(l, l.StartOffset(), l.EndOffset())
	require.NoError(s.t, err)
	for _, a := range aborted {
		out = append(out, fmt.Sprintf("aborted: producer %d from %d", a.ProducerID, a.FirstOffset))
	}
	if r := l.Recovery(); r.Ran {
		out = append(out, fmt.Sprintf("recovered, %d bytes cut", r.Truncated))
	}
	return out
}

func (s *script) files() []string {
	entries, err := s.fs.ReadDir("/data/topic-0")
	require.NoError(s.t, err)
	var out []string
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(s.t, err)
		out = append(out, fmt.Sprintf("%s %d", e.Name(), info.Size()))
	}
	return out
}

func (s *script) ops() []string {
	var out []string
	for _, o := range s.fs.History(s.seen) {
		out = append(out, strings.ReplaceAll(o.String(), "/data/", ""))
	}
	s.seen = s.fs.Ops()
	return out
}
