package embedded

import (
	"time"

	"barnabas/zkstate/embedded/proto"
)

// latency sums up how long requests took, in milliseconds.
type latency struct {
	min, max, sum, count int64
}

func (l *latency) add(ms int64) {
	if l.count == 0 || ms < l.min {
		l.min = ms
	}
	l.max = max(l.max, ms)
	l.sum += ms
	l.count++
}

func (l *latency) avg() float64 {
	if l.count == 0 {
		return 0
	}
	return float64(l.sum) / float64(l.count)
}

// serverStats are the figures of the whole server since it started.
type serverStats struct {
	received, sent int64
	latency        latency
}

// connStats are the figures of one connection; only the engine touches them after the connection began.
type connStats struct {
	established    time.Time
	received, sent int64
	lastOp         string
	lastXid        int32
	lastZxid       int64
	lastResponse   int64 // milliseconds since the server started
	lastLatency    int64
	latency        latency
}

// account records a request that was answered.
func (e *engine) account(ev event) {
	ms := time.Since(ev.received).Milliseconds()
	st := &ev.conn.stats
	e.stats.received++
	e.stats.latency.add(ms)
	st.received++
	st.latency.add(ms)
	st.lastLatency, st.lastResponse, st.lastZxid = ms, time.Since(e.epoch).Milliseconds(), e.m.Zxid()
	if ev.kind == evConnect {
		st.lastOp = "SESS"
		return
	}
	st.lastOp, st.lastXid = opName(ev.header.Op), ev.header.Xid
}

// opName is the short name that `cons` shows for an operation.
func opName(op proto.Op) string {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return "CREA"
	case proto.OpDelete, proto.OpDeleteContainer:
		return "DELE"
	case proto.OpExists:
		return "EXIS"
	case proto.OpGetData:
		return "GETD"
	case proto.OpSetData:
		return "SETD"
	case proto.OpGetACL:
		return "GETA"
	case proto.OpSetACL:
		return "SETA"
	case proto.OpGetChildren, proto.OpGetChildren2:
		return "GETC"
	case proto.OpSync:
		return "SYNC"
	case proto.OpPing:
		return "PING"
	case proto.OpCheck:
		return "CHEC"
	case proto.OpMulti:
		return "MULT"
	case proto.OpMultiRead:
		return "MLTR"
	case proto.OpReconfig:
		return "RECO"
	case proto.OpCheckWatches:
		return "CHKW"
	case proto.OpRemoveWatches:
		return "REMW"
	case proto.OpSetWatches:
		return "SETW"
	case proto.OpSetWatches2:
		return "STW2"
	case proto.OpAddWatch:
		return "ADDW"
	case proto.OpGetEphemerals:
		return "GETE"
	case proto.OpGetAllChildrenNum:
		return "GETACN"
	case proto.OpWhoAmI:
		return "HOMI"
	case proto.OpCloseSession:
		return "CLOS"
	}
	return "NA"
}
