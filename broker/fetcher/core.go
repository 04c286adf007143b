package fetcher

import (
	"cmp"
	"slices"
	"time"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// core is the state machine of one connection to one leader. It does no I/O: it
// says what to do next (next), is told what became of it (the answer* methods),
// hands out operations on logs (op), and is told what became of those (done).
// Time is passed in; nothing depends on the order of a map.
//
// Each partition is in one of three states:
//
//	truncating  the log may hold what the leader does not have; ask where the
//	            leader's epochs end and cut, again if need be (KIP-101, KIP-279)
//	locating    the leader does not have the offset: ask for its log end, then for
//	            its log start
//	fetching    records are asked for from offset on
//
// and besides may be delayed, for a while after an error.
//
// From IBP 2.7 on there is no truncating before fetching: each fetch says which
// epoch the follower's last record has, and the leader's answer says where the
// logs part (KIP-595). An answer with a diverging epoch moves nothing else, not
// the high watermark in particular (H05).
//
// Every answer is compared with the leader epoch and the offset that were asked
// with: an answer to a question of an earlier epoch is dropped (H04).
type core struct {
	versions
	self    int32
	backoff time.Duration
	parts   map[commitlog.TopicPartition]*part
	turn    int64 // orders partitions: who got records goes to the end
	session session
	limits  limits
}

// limits are the sizes and times of a fetch request.
type limits struct {
	maxBytes, partitionMax, minBytes int32
	maxWait                          time.Duration
}

type state int8

const (
	fetching state = iota
	truncating
	locatingEnd
	locatingStart
)

// part is one followed partition.
type part struct {
	tp          commitlog.TopicPartition
	id          commitlog.TopicID
	handle      *partition.Partition // the shell's; the core does not look at it
	leaderEpoch int32
	state       state
	offset      int64 // to fetch from; in state truncating: where to cut if the leader knows no better
	lastEpoch   int32 // of the last record before offset; -1: not known
	logStart    int64
	logEnd      int64
	leaderEnd   int64     // in state locatingStart
	delayed     time.Time // no request before; zero: none
	failures    int       // in a row, for the delay
	lag         int64     // behind the leader's high watermark at its last answer
	resync      bool      // where the log stands must be read again before the next request
	turn        int64
	listed      bool // in session.changed
}

// ready tells that records can be asked for.
func (p *part) ready() bool { return p.state == fetching && p.delayed.IsZero() && !p.resync }

func newCore(v versions, self int32, backoff time.Duration, l limits) *core {
	return &core{versions: v, self: self, backoff: backoff, limits: l, parts: map[commitlog.TopicPartition]*part{}, session: newSession()}
}

// add begins to follow, or goes on in a new leader epoch. Within the same epoch
// only the topic id can be news. s is where the log stands.
//
// The truncation step follows from the epoch alone, not from who leads: a
// follower that missed an epoch of the same leader has to cut as well (H03).
func (c *core) add(handle *partition.Partition, tp commitlog.TopicPartition, id commitlog.TopicID, epoch int32, s partition.FollowerState) {
	p := c.parts[tp]
	if p != nil && p.leaderEpoch == epoch {
		p.id = id
		c.touch(p)
		return
	}
	if p == nil {
		p = &part{tp: tp}
		c.parts[tp] = p
	}
	p.handle, p.id, p.leaderEpoch = handle, id, epoch
	p.delayed, p.failures = time.Time{}, 0
	c.start(p, s)
	c.toEnd(p)
}

// start puts a partition at the beginning of its way.
func (c *core) start(p *part, s partition.FollowerState) {
	p.resync = false
	p.logStart, p.logEnd = s.Start, s.End
	p.lastEpoch = -1
	if c.cutByFetch && s.LatestEpoch >= 0 {
		p.state, p.offset, p.lastEpoch = fetching, s.End, s.LatestEpoch
	} else {
		p.state, p.offset = truncating, s.HighWatermark
		if s.LatestEpoch >= 0 {
			p.lastEpoch = s.LatestEpoch
		}
	}
	c.touch(p)
}

// remove stops following.
func (c *core) remove(tp commitlog.TopicPartition) {
	if p := c.parts[tp]; p != nil {
		delete(c.parts, tp)
		c.session.forget(p)
	}
}

// touch notes that the session may have to be told something about a partition.
func (c *core) touch(p *part) { c.session.touch(p) }

func (c *core) toEnd(p *part) {
	c.turn++
	p.turn = c.turn
}

// delay keeps a partition out of requests for a while. It counts in powers of
// two up to a minute when the errors do not end.
func (c *core) delay(now time.Time, p *part) {
	wait := c.backoff << min(p.failures, 6)
	p.failures++
	p.delayed = now.Add(min(wait, max(time.Minute, c.backoff)))
	c.toEnd(p)
	c.touch(p)
}

// hold keeps partitions that are behind out of requests until a throttle allows
// them again. It is no failure, and one that has caught up is not held.
func (c *core) hold(until time.Time, named func(*part) bool) {
	for _, p := range c.parts {
		if p.lag > 0 && p.ready() && named(p) {
			p.delayed = until
			c.touch(p)
		}
	}
}

// inTurn returns the partitions for which want holds, ordered by turn.
func (c *core) inTurn(want func(*part) bool) []*part {
	var ps []*part
	for _, p := range c.parts {
		if want(p) {
			ps = append(ps, p)
		}
	}
	slices.SortFunc(ps, func(a, b *part) int { return cmp.Compare(a.turn, b.turn) })
	return ps
}

// action is what the shell is to do next; exactly one field says something.
type action struct {
	resync []*part        // read where these logs stand and call start
	cut    []op           // cut these logs without asking the leader
	epochs []*part        // ask where the leader's epochs end
	locate []*part        // ask for the log end, or start, of these
	latest bool           // with locate: the end
	fetch  *fetchRequest  // ask for records
	sleep  *time.Duration // nothing to do for so long, unless told; negative: until told
}

// next says what to do at now.
func (c *core) next(now time.Time) action {
	var soonest time.Time
	var resync, cut, ask, ends, starts bool
	for _, p := range c.parts {
		if !p.delayed.IsZero() {
			if now.Before(p.delayed) {
				if soonest.IsZero() || p.delayed.Before(soonest) {
					soonest = p.delayed
				}
				continue
			}
			p.delayed = time.Time{}
			c.touch(p)
		}
		switch {
		case p.resync:
			resync = true
		case p.state == truncating && c.epochLookup && p.lastEpoch >= 0:
			ask = true
		case p.state == truncating:
			cut = true
		case p.state == locatingEnd:
			ends = true
		case p.state == locatingStart:
			starts = true
		}
	}
	is := func(s state) func(*part) bool {
		return func(p *part) bool { return p.state == s && p.delayed.IsZero() && !p.resync }
	}
	switch {
	case resync:
		return action{resync: c.inTurn(func(p *part) bool { return p.resync && p.delayed.IsZero() })}
	case cut:
		var ops []op
		for _, p := range c.inTurn(is(truncating)) {
			if !c.epochLookup || p.lastEpoch < 0 {
				ops = append(ops, op{part: p, epoch: p.leaderEpoch, kind: cutAt, offset: p.offset, finished: true})
			}
		}
		return action{cut: ops}
	case ask:
		return action{epochs: c.inTurn(is(truncating))}
	case ends:
		return action{locate: c.inTurn(is(locatingEnd)), latest: true}
	case starts:
		return action{locate: c.inTurn(is(locatingStart))}
	}
	if req := c.buildFetch(); req != nil {
		return action{fetch: req}
	}
	sleep := time.Duration(-1)
	if !soonest.IsZero() {
		sleep = soonest.Sub(now)
	}
	return action{sleep: &sleep}
}

// opKind is what an op does to a log.
type opKind int8

const (
	appendRecords opKind = iota
	cutAt                // at offset
	cutByEpoch           // where leaderFound ends on both sides
	emptyAt              // remove everything, go on at offset
)

// op is one operation on one follower's log.
type op struct {
	part   *part
	epoch  int32 // the leader epoch it is done in
	kind   opKind
	offset int64 // appendRecords: that was asked for; cutAt, emptyAt: where

	fetched  partition.Fetched // appendRecords
	finished bool              // cutAt: fetching may begin

	leaderFound int32 // cutByEpoch: the leader's answer
	leaderEnd   int64
}

// done takes what became of an op: where the log stands now.
func (c *core) done(now time.Time, o *op, s partition.FollowerState, finished bool, err error) {
	p := c.parts[o.part.tp]
	if p != o.part || p.leaderEpoch != o.epoch {
		return
	}
	if err != nil {
		p.resync = true
		c.delay(now, p)
		return
	}
	p.failures = 0
	p.logStart, p.logEnd = s.Start, s.End
	if o.kind == appendRecords {
		p.lag = max(0, p.lag-(s.End-p.offset))
		if s.End != p.offset {
			p.offset, p.lastEpoch = s.End, s.LatestEpoch
			c.toEnd(p)
		}
		// An empty answer says nothing about epochs: lastEpoch stays (H08).
		c.touch(p)
		return
	}
	p.offset, p.lastEpoch = s.End, s.LatestEpoch
	p.state = truncating
	if finished || c.cutByFetch {
		p.state = fetching
	}
	c.touch(p)
}

// cutPoint decides where a follower's log is cut, given the leader's answer for
// an epoch (KIP-101, KIP-279, H02) and what the follower itself has for the epoch
// the leader found. finished: the logs agree below; else the question has to be
// asked again with what is now the latest epoch.
//
//   - the leader knows no such epoch (it found none): cut at fallback, the high
//     watermark
//   - the leader is of the days before epochs were in the answer: its offset
//   - the follower knows the found epoch: the smaller of both ends
//   - the follower has an older one only: cut to the end of that, ask again
//   - the follower has nothing so old: the leader's offset
func cutPoint(leaderFound int32, leaderEnd int64, ownFound int32, ownEnd, logEnd, fallback int64) (offset int64, finished bool) {
	switch {
	case leaderEnd < 0:
		return fallback, true
	case leaderFound < 0, ownFound < 0:
		return min(leaderEnd, logEnd), true
	case ownFound != leaderFound:
		return min(ownEnd, logEnd), false
	}
	return min(ownEnd, leaderEnd, logEnd), true
}
