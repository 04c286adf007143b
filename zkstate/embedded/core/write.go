package core

import "barnabas/zkstate/embedded/proto"

// isWrite tells which operations take a zxid.
func isWrite(op proto.Op) bool {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpDeleteContainer,
		proto.OpSetData, proto.OpSetACL, proto.OpCheck, proto.OpMulti, proto.OpReconfig:
		return true
	}
	return false
}

// write runs one write request as a transaction and answers it.
func (m *Machine) write(now Now, c *conn, h proto.Header, req proto.Request) {
	if req == nil {
		if h.Op == proto.OpMulti { // it takes its zxid before it is read
			m.begin(now, c)
		}
		m.reply(c, h.Xid, proto.MarshallingError, nil)
		return
	}
	t := m.begin(now, c)
	var (
		code = proto.OK
		body func([]byte) []byte
	)
	switch r := req.(type) {
	case *proto.MultiRequest:
		body = t.multi(r)
	case *proto.SetACLRequest:
		var st proto.Stat
		st, code = t.setACL(r)
		body = func(b []byte) []byte { return proto.AppendStat(b, st) }
	case *proto.PathRequest:
		code = t.deleteContainer(r.Path)
	case *proto.EmptyRequest:
		code = m.refuseReconfig()
	default:
		var res opResult
		res, code = t.apply(h.Op, req)
		body = res.appendBody
	}
	// A watcher hears of a change before the writer hears that it is done, as in ZooKeeper.
	t.commit()
	m.reply(c, h.Xid, code, body)
}

// refuseReconfig says why: there is one server, so there is no ensemble to change.
func (m *Machine) refuseReconfig() proto.Code {
	if !m.opt.ReconfigEnabled {
		return proto.ReconfigDisabled
	}
	return proto.Unimplemented
}

// opResult is what an operation that may stand in a multi answers.
type opResult struct {
	op      proto.Op
	path    string
	stat    proto.Stat
	hasStat bool
}

// appendBody encodes the answer of the operation by itself.
func (r opResult) appendBody(b []byte) []byte {
	if r.path != "" {
		b = proto.AppendString(b, r.path)
	}
	if r.hasStat {
		b = proto.AppendStat(b, r.stat)
	}
	return b
}

// apply runs one of the operations that may stand in a multi.
func (t *txn) apply(op proto.Op, req proto.Request) (opResult, proto.Code) {
	res := opResult{op: op}
	var code proto.Code
	switch r := req.(type) {
	case *proto.CreateRequest:
		res.hasStat = r.Op != proto.OpCreate
		res.path, res.stat, code = t.create(r)
	case *proto.DeleteRequest:
		code = t.delete(r)
	case *proto.SetDataRequest:
		res.hasStat = true
		res.stat, code = t.setData(r)
	case *proto.CheckRequest:
		code = t.check(r)
	default:
		code = proto.MarshallingError
	}
	return res, code
}

// multi applies all operations or none. A failed one still answers one result per operation: 0 for those before the failure,
// its code for the failed one, RuntimeInconsistency for those after; the header of the answer itself says success.
func (t *txn) multi(r *proto.MultiRequest) func([]byte) []byte {
	results := make([]opResult, 0, len(r.Ops))
	for i, op := range r.Ops {
		res, code := t.apply(op.Op, op.Body)
		if code == proto.OK {
			results = append(results, res)
			continue
		}
		t.rollback()
		t.events = nil
		return func(b []byte) []byte { return appendFailedMulti(b, len(r.Ops), i, code) }
	}
	return func(b []byte) []byte {
		for _, res := range results {
			op := res.op
			if res.hasStat && res.path != "" {
				op = proto.OpCreate2 // every create that answers a stat answers under this number
			}
			b = res.appendBody(proto.AppendMultiHeader(b, op, false, 0))
		}
		return proto.AppendMultiHeader(b, proto.OpError, true, -1)
	}
}

func appendFailedMulti(b []byte, ops, failed int, code proto.Code) []byte {
	for i := range ops {
		c := proto.OK
		switch {
		case i == failed:
			c = code
		case i > failed:
			c = proto.RuntimeInconsistency
		}
		b = appendErrorResult(b, c)
	}
	return proto.AppendMultiHeader(b, proto.OpError, true, -1)
}

func appendErrorResult(b []byte, c proto.Code) []byte {
	return proto.AppendInt32(proto.AppendMultiHeader(b, proto.OpError, false, int32(c)), int32(c))
}
