package txn

import (
	"cmp"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// lastUsableEpoch is the highest epoch that a client gets. The one above is kept
// so that whoever has it can still be fenced.
const lastUsableEpoch = math.MaxInt16 - 1

func exhausted(epoch int16) bool { return epoch >= lastUsableEpoch }

// status is what is known of a transactional id. The log keeps all but the last
// producer, which only serves to recognise a repeated InitProducerID.
type status struct {
	producer   Producer
	last       Producer
	timeoutMs  int32
	state      State
	partitions []TopicPartition // sorted, each once; never changed in place
	startMs    int64
	updateMs   int64
}

// transaction is one transactional id.
type transaction struct {
	id   string
	now  status
	next *status // being written to the log; nil: nothing is

	// failedFence says that the epoch was raised by a fence that may not be in the
	// log. Nobody was told of it, so that the next fence need not raise it again.
	failedFence bool

	// openedMs is since when the transaction is open, by the clock of this broker and whatever is done to that: it moves with
	// Core.Shift. The start in the log may be of a clock that is a year ahead (H49).
	openedMs int64

	// left are the partitions whose marker is not known to be written, with the
	// time since when the metadata does not know them, or NoTime.
	left map[TopicPartition]int64
}

// accepts tells whether somebody who asks for the next epoch is who has the
// present one, or had it before its producer id was changed.
func (t *transaction) accepts(p Producer) bool {
	s := &t.now
	return s.producer.Epoch == NoProducerEpoch || p.ID == s.producer.ID || p.ID == s.last.ID && exhausted(p.Epoch)
}

// renewed is the status of an id whose producer gets the next epoch, or the new
// producer id fresh when the epochs of the present one are used up.
func (t *transaction) renewed(nowMs int64, req *InitRequest, fresh int64) (status, error) {
	s := status{timeoutMs: req.TimeoutMs, state: Empty, startMs: NoTime, updateMs: nowMs}
	s.last = Producer{t.now.producer.ID, NoProducerEpoch}
	was := t.now.producer
	switch {
	case t.mustRotate(req):
		s.producer = Producer{fresh, 0}
		if req.Present != nil {
			s.last.Epoch = was.Epoch
		}
	case req.Present == nil:
		s.producer = Producer{was.ID, was.Epoch + 1}
	case was.Epoch == NoProducerEpoch || req.Present.Epoch == was.Epoch:
		s.producer = Producer{was.ID, was.Epoch + 1}
		s.last.Epoch = was.Epoch
	case req.Present.Epoch == t.now.last.Epoch: // a repeated request: nobody else came in between, or last would be gone
		s.producer, s.last = was, Producer{was.ID, t.now.last.Epoch}
	default:
		return status{}, kerr.ProducerFenced
	}
	return s, nil
}

// mustRotate tells that the next producer id is needed.
func (t *transaction) mustRotate(req *InitRequest) bool {
	return exhausted(t.now.producer.Epoch) && (req.Present == nil || req.Present.Epoch == t.now.producer.Epoch)
}

func sortPartitions(list []TopicPartition) {
	slices.SortFunc(list, comparePartitions)
}

func comparePartitions(a, b TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

func (s *status) has(tp TopicPartition) bool {
	_, found := slices.BinarySearchFunc(s.partitions, tp, comparePartitions)
	return found
}

func (s *status) hasAll(list []TopicPartition) bool {
	for _, tp := range list {
		if !s.has(tp) {
			return false
		}
	}
	return true
}

// with are the partitions and those of list.
func (s *status) with(list []TopicPartition) []TopicPartition {
	all := append(slices.Clone(s.partitions), list...)
	sortPartitions(all)
	return slices.Compact(all)
}
