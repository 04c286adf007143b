package group

// offset is a committed offset as the log has it.
type offset struct {
	offset      int64
	leaderEpoch int32 // -1: not known
	metadata    string
	commitMs    int64
	expireMs    int64 // NoTime: by retention; else as the commit asked (versions 2 to 4)
	at          int64 // offset of its record: what comes later in the log counts
}

// offsets are those of one group.
//
// Invariants:
//
//   - committed holds only what is below the high watermark, and of each
//     partition the record latest in the log: a commit never goes back, whatever
//     order the appends are acknowledged in
//   - underway is the latest commit of a partition that is not acknowledged yet;
//     such a partition's offset does not expire
//   - open are commits of transactions that have not ended (KIP-447)
type offsets struct {
	committed map[TopicPartition]offset
	underway  map[TopicPartition]*offset
	open      map[int64]map[TopicPartition]*offset
}

// NoOffset is the offset of a partition without one.
const NoOffset = int64(-1)

// notInLog is the place of a transaction's commit that is on its way there.
const notInLog = int64(-1)

func (o *offsets) has() bool { return len(o.committed) > 0 || len(o.underway) > 0 || len(o.open) > 0 }

func (o *offsets) begin(tp TopicPartition, v *offset) {
	if o.underway == nil {
		o.underway = map[TopicPartition]*offset{}
	}
	o.underway[tp] = v
}

// end takes note of the outcome of a commit that begin was told of. One whose
// topic was deleted meanwhile is forgotten.
func (o *offsets) end(tp TopicPartition, v *offset, ok bool) {
	latest := o.underway[tp]
	if latest == nil {
		return
	}
	if ok {
		o.put(tp, v)
	}
	if latest == v {
		delete(o.underway, tp)
	}
}

func (o *offsets) put(tp TopicPartition, v *offset) {
	if known, found := o.committed[tp]; found && known.at > v.at {
		return
	}
	if o.committed == nil {
		o.committed = map[TopicPartition]offset{}
	}
	o.committed[tp] = *v
}

func (o *offsets) beginOpen(producer int64, tp TopicPartition, v *offset) {
	if o.open == nil {
		o.open = map[int64]map[TopicPartition]*offset{}
	}
	if o.open[producer] == nil {
		o.open[producer] = map[TopicPartition]*offset{}
	}
	o.open[producer][tp] = v
}

// failOpen takes back a transaction's commit that did not reach the log.
func (o *offsets) failOpen(producer int64, tp TopicPartition, v *offset) {
	pending := o.open[producer]
	if pending[tp] == v {
		delete(pending, tp)
	}
	if len(pending) == 0 {
		delete(o.open, producer)
	}
}

// endOpen ends a transaction. What it commits counts from its own place in the
// log, not from the marker's.
func (o *offsets) endOpen(producer int64, commit bool) {
	pending := o.open[producer]
	delete(o.open, producer)
	if !commit {
		return
	}
	//purecore:anyorder each partition for itself
	for tp, v := range pending {
		if v.at != notInLog {
			o.put(tp, v)
		}
	}
}

// unstable tells whether a partition's offset may change without another commit.
func (o *offsets) unstable(tp TopicPartition) bool {
	if o.underway[tp] != nil {
		return true
	}
	//purecore:anyorder any will do
	for _, pending := range o.open {
		if pending[tp] != nil {
			return true
		}
	}
	return false
}

// drop forgets everything about a partition; it tells whether there was an
// offset.
func (o *offsets) drop(tp TopicPartition) bool {
	delete(o.underway, tp)
	//purecore:anyorder each producer for itself
	for producer, pending := range o.open {
		delete(pending, tp)
		if len(pending) == 0 {
			delete(o.open, producer)
		}
	}
	_, found := o.committed[tp]
	delete(o.committed, tp)
	return found
}

// sorted are the partitions that have an offset, in order.
func (o *offsets) sorted(which func(TopicPartition, *offset) bool) []TopicPartition {
	var list []TopicPartition
	//purecore:anyorder they are sorted
	for tp, v := range o.committed {
		if which(tp, &v) {
			list = append(list, tp)
		}
	}
	sortPartitions(list)
	return list
}

func every(TopicPartition, *offset) bool { return true }

// expired are the partitions whose offset nobody has needed for the retention
// time (KIP-211): from when the group became empty; from the commit, for topics
// that a stable consumer group does not want any more, and for those who commit
// without being members. Other groups keep theirs.
func (g *group) expired(nowMs, retentionMs int64) []TopicPartition {
	var since func(*offset) int64
	wanted := map[string]bool(nil)
	byCommit := func(v *offset) int64 { return v.commitMs }
	switch {
	case g.protocolType == nil, g.state == Empty && g.stateMs == NoTime:
		since = byCommit
	case g.state == Empty:
		since = func(*offset) int64 { return g.stateMs }
	case g.state == Stable && g.isConsumers() && g.subscribed != nil:
		since, wanted = byCommit, g.subscribed
	default:
		return nil
	}
	return g.sorted(func(tp TopicPartition, v *offset) bool {
		switch {
		case wanted[tp.Topic] || g.underway[tp] != nil:
			return false
		case v.expireMs != NoTime:
			return nowMs >= v.expireMs
		}
		return nowMs-since(v) >= retentionMs
	})
}
