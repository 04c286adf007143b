package proto

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed says that bytes do not form the record they should.
var ErrMalformed = errors.New("malformed ZooKeeper request")

// reader walks over a frame. The first thing that does not fit makes it bad for good: later reads give zero values.
type reader struct {
	buf []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.buf) {
		r.bad = true
		return nil
	}
	out := r.buf[:n:n]
	r.buf = r.buf[n:]
	return out
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) bool() bool {
	b := r.take(1)
	return b != nil && b[0] != 0
}

// buffer copies a buffer; null is nil, empty is not.
func (r *reader) buffer() []byte {
	n := r.int32()
	if r.bad || n == -1 {
		return nil
	}
	b := r.take(int(n))
	if b == nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

// string reads a string; null reads as empty, which no valid path or scheme is.
func (r *reader) string() string {
	n := r.int32()
	if r.bad || n == -1 {
		return ""
	}
	return string(r.take(int(n)))
}

// count reads the size of a vector whose elements take at least min bytes each; null counts zero.
func (r *reader) count(min int) int {
	n := r.int32()
	if r.bad || n == -1 {
		return 0
	}
	if n < 0 || int(n) > len(r.buf)/min {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *reader) strings() []string {
	n := r.count(4)
	out := make([]string, 0, n)
	for i := 0; i < n && !r.bad; i++ {
		out = append(out, r.string())
	}
	return out
}

func (r *reader) acls() []ACL {
	n := r.count(12)
	out := make([]ACL, 0, n)
	for i := 0; i < n && !r.bad; i++ {
		out = append(out, ACL{Perms: r.int32(), Scheme: r.string(), ID: r.string()})
	}
	return out
}

// DecodeConnect reads the first frame of a connection.
func DecodeConnect(frame []byte) (ConnectRequest, error) {
	r := reader{buf: frame}
	c := ConnectRequest{
		ProtocolVersion: r.int32(), LastZxidSeen: r.int64(), TimeoutMs: r.int32(), SessionID: r.int64(), Password: r.buffer(),
	}
	if r.bad {
		return ConnectRequest{}, fmt.Errorf("connect: %w", ErrMalformed)
	}
	if len(r.buf) > 0 {
		c.HasReadOnly, c.ReadOnly = true, r.bool()
	}
	return c, nil
}

// DecodeHeader splits a frame into its header and the body.
func DecodeHeader(frame []byte) (Header, []byte, error) {
	r := reader{buf: frame}
	h := Header{Xid: r.int32(), Op: Op(r.int32())}
	if r.bad {
		return Header{}, nil, fmt.Errorf("header: %w", ErrMalformed)
	}
	return h, r.buf, nil
}

// Known tells whether a client may send op at all; anything else is answered Unimplemented and ends the session.
func Known(op Op) bool {
	switch op {
	case OpCreate, OpDelete, OpExists, OpGetData, OpSetData, OpGetACL, OpSetACL, OpGetChildren, OpSync, OpPing, OpGetChildren2,
		OpCheck, OpMulti, OpCreate2, OpReconfig, OpCheckWatches, OpRemoveWatches, OpCreateContainer, OpDeleteContainer,
		OpCreateTTL, OpMultiRead, OpAuth, OpSetWatches, OpSASL, OpGetEphemerals, OpGetAllChildrenNum, OpSetWatches2, OpAddWatch,
		OpWhoAmI, OpCloseSession:
		return true
	}
	return false
}

// DecodeRequest reads the body of a request of type op. Bytes left over are ignored, as ZooKeeper ignores them.
func DecodeRequest(op Op, body []byte) (Request, error) {
	r := reader{buf: body}
	var req Request
	switch op {
	case OpMulti, OpMultiRead:
		req = decodeMulti(&r, op)
	case OpSetWatches, OpSetWatches2:
		s := &SetWatchesRequest{RelativeZxid: r.int64(), Data: r.strings(), Exist: r.strings(), Child: r.strings()}
		if op == OpSetWatches2 {
			s.Persistent, s.PersistentTree = r.strings(), r.strings()
		}
		req = s
	case OpAuth:
		req = &AuthRequest{Type: r.int32(), Scheme: r.string(), Auth: r.buffer()}
	case OpPing, OpCloseSession, OpWhoAmI, OpReconfig, OpSASL:
		req = &EmptyRequest{}
	default:
		req = decodeSimple(&r, op)
	}
	if req == nil || r.bad {
		return nil, fmt.Errorf("operation %d: %w", op, ErrMalformed)
	}
	return req, nil
}

// decodeSimple reads the operations that name one node.
func decodeSimple(r *reader, op Op) Request {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		c := &CreateRequest{Op: op, Path: r.string(), Data: r.buffer(), ACL: r.acls(), Flags: r.int32(), TTL: -1}
		if op == OpCreateTTL {
			c.TTL = r.int64()
		}
		return c
	case OpDelete:
		return &DeleteRequest{Path: r.string(), Version: r.int32()}
	case OpSetData:
		return &SetDataRequest{Path: r.string(), Data: r.buffer(), Version: r.int32()}
	case OpSetACL:
		return &SetACLRequest{Path: r.string(), ACL: r.acls(), Version: r.int32()}
	case OpCheck:
		return &CheckRequest{Path: r.string(), Version: r.int32()}
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		return &ReadRequest{Path: r.string(), Watch: r.bool()}
	case OpSync, OpGetACL, OpDeleteContainer, OpGetEphemerals, OpGetAllChildrenNum:
		return &PathRequest{Path: r.string()}
	case OpAddWatch, OpRemoveWatches, OpCheckWatches:
		return &WatchRequest{Path: r.string(), Mode: r.int32()}
	}
	return nil
}

// decodeMulti reads (header, body)* and the end header. Which operations make sense inside is asked here, so that an alien
// one is a malformed request, as it is for ZooKeeper.
func decodeMulti(r *reader, kind Op) Request {
	m := &MultiRequest{}
	for !r.bad {
		op, done, _ := Op(r.int32()), r.bool(), r.int32()
		if r.bad {
			return nil
		}
		if done {
			return m
		}
		switch {
		case kind == OpMulti && (op == OpCreate || op == OpCreate2 || op == OpCreateContainer || op == OpCreateTTL ||
			op == OpDelete || op == OpSetData || op == OpCheck):
		case kind == OpMultiRead && (op == OpGetData || op == OpGetChildren):
		default:
			return nil
		}
		m.Ops = append(m.Ops, MultiOp{Op: op, Body: decodeSimple(r, op)})
	}
	return nil
}

// DecodeACLs reads a vector of ACL entries that fills b.
func DecodeACLs(b []byte) ([]ACL, error) {
	r := reader{buf: b}
	acls := r.acls()
	if r.bad || len(r.buf) != 0 {
		return nil, fmt.Errorf("ACL: %w", ErrMalformed)
	}
	return acls, nil
}
