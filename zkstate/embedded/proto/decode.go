package proto

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed says that bytes do not form the record they should.
var ErrMalformed = errors.New("malformed ZooKeeper request")

// Reader walks over the bytes of a record. The first thing that does not fit makes it bad for good: later reads give zero values
// and Err says so.
type Reader struct {
	buf []byte
	bad bool
}

// NewReader reads b, which must not change meanwhile.
func NewReader(b []byte) *Reader { return &Reader{buf: b} }

// Err is ErrMalformed once something did not fit.
func (r *Reader) Err() error {
	if r.bad {
		return ErrMalformed
	}
	return nil
}

func (r *Reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.buf) {
		r.bad = true
		return nil
	}
	out := r.buf[:n:n]
	r.buf = r.buf[n:]
	return out
}

// Int32 reads an int.
func (r *Reader) Int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Int64 reads a long.
func (r *Reader) Int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	b := r.take(1)
	return b != nil && b[0] != 0
}

// Buffer copies a buffer; null is nil, empty is not.
func (r *Reader) Buffer() []byte {
	n := r.Int32()
	if r.bad || n == -1 {
		return nil
	}
	b := r.take(int(n))
	if b == nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

// String reads a string; null reads as empty, which no valid path or scheme is.
func (r *Reader) String() string {
	n := r.Int32()
	if r.bad || n == -1 {
		return ""
	}
	return string(r.take(int(n)))
}

// count reads the size of a vector whose elements take at least min bytes each; null counts zero.
func (r *Reader) count(min int) int {
	n := r.Int32()
	if r.bad || n == -1 {
		return 0
	}
	if n < 0 || int(n) > len(r.buf)/min {
		r.bad = true
		return 0
	}
	return int(n)
}

// Strings reads a vector of strings.
func (r *Reader) Strings() []string {
	n := r.count(4)
	out := make([]string, 0, n)
	for i := 0; i < n && !r.bad; i++ {
		out = append(out, r.String())
	}
	return out
}

// Stat reads a node's metadata.
func (r *Reader) Stat() Stat {
	return Stat{
		Czxid: r.Int64(), Mzxid: r.Int64(), Ctime: r.Int64(), Mtime: r.Int64(), Version: r.Int32(), Cversion: r.Int32(),
		Aversion: r.Int32(), EphemeralOwner: r.Int64(), DataLength: r.Int32(), NumChildren: r.Int32(), Pzxid: r.Int64(),
	}
}

// ACLs reads a vector of ACL entries.
func (r *Reader) ACLs() []ACL {
	n := r.count(12)
	out := make([]ACL, 0, n)
	for i := 0; i < n && !r.bad; i++ {
		out = append(out, ACL{Perms: r.Int32(), Scheme: r.String(), ID: r.String()})
	}
	return out
}

// DecodeConnect reads the first frame of a connection.
func DecodeConnect(frame []byte) (ConnectRequest, error) {
	r := Reader{buf: frame}
	c := ConnectRequest{
		ProtocolVersion: r.Int32(), LastZxidSeen: r.Int64(), TimeoutMs: r.Int32(), SessionID: r.Int64(), Password: r.Buffer(),
	}
	if r.bad {
		return ConnectRequest{}, fmt.Errorf("connect: %w", ErrMalformed)
	}
	if len(r.buf) > 0 {
		c.HasReadOnly, c.ReadOnly = true, r.Bool()
	}
	return c, nil
}

// DecodeHeader splits a frame into its header and the body.
func DecodeHeader(frame []byte) (Header, []byte, error) {
	r := Reader{buf: frame}
	h := Header{Xid: r.Int32(), Op: Op(r.Int32())}
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
	r := Reader{buf: body}
	var req Request
	switch op {
	case OpMulti, OpMultiRead:
		req = decodeMulti(&r, op)
	case OpSetWatches, OpSetWatches2:
		s := &SetWatchesRequest{RelativeZxid: r.Int64(), Data: r.Strings(), Exist: r.Strings(), Child: r.Strings()}
		if op == OpSetWatches2 {
			s.Second, s.Persistent, s.PersistentTree = true, r.Strings(), r.Strings()
		}
		req = s
	case OpAuth:
		req = &AuthRequest{Type: r.Int32(), Scheme: r.String(), Auth: r.Buffer()}
	case OpSASL:
		req = &SASLRequest{Token: r.Buffer()}
	case OpPing, OpCloseSession, OpWhoAmI, OpReconfig:
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
func decodeSimple(r *Reader, op Op) Request {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		c := &CreateRequest{Op: op, Path: r.String(), Data: r.Buffer(), ACL: r.ACLs(), Flags: r.Int32(), TTL: -1}
		if op == OpCreateTTL {
			c.TTL = r.Int64()
		}
		return c
	case OpDelete:
		return &DeleteRequest{Path: r.String(), Version: r.Int32()}
	case OpSetData:
		return &SetDataRequest{Path: r.String(), Data: r.Buffer(), Version: r.Int32()}
	case OpSetACL:
		return &SetACLRequest{Path: r.String(), ACL: r.ACLs(), Version: r.Int32()}
	case OpCheck:
		return &CheckRequest{Path: r.String(), Version: r.Int32()}
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		return &ReadRequest{Path: r.String(), Watch: r.Bool()}
	case OpSync, OpGetACL, OpDeleteContainer, OpGetEphemerals, OpGetAllChildrenNum:
		return &PathRequest{Path: r.String()}
	case OpAddWatch, OpRemoveWatches, OpCheckWatches:
		return &WatchRequest{Path: r.String(), Mode: r.Int32()}
	}
	return nil
}

// maxCreateFlags is the highest mode of a create: sequential with a time to live.
const maxCreateFlags = 6

// decodeMulti reads (header, body)* and the end header. Which operations make sense inside is asked here, so that an alien
// one is a malformed request, as it is for ZooKeeper.
func decodeMulti(r *Reader, kind Op) Request {
	m := &MultiRequest{}
	for !r.bad {
		op, done, _ := Op(r.Int32()), r.Bool(), r.Int32()
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
		body := decodeSimple(r, op)
		if c, ok := body.(*CreateRequest); ok && op != OpCreateTTL && (c.Flags < 0 || c.Flags > maxCreateFlags) {
			return nil // by itself it is a bad argument, in a multi it spoils the whole
		}
		m.Ops = append(m.Ops, MultiOp{Op: op, Body: body})
	}
	return nil
}

// DecodeACLs reads a vector of ACL entries that fills b.
func DecodeACLs(b []byte) ([]ACL, error) {
	r := Reader{buf: b}
	acls := r.ACLs()
	if r.bad || len(r.buf) != 0 {
		return nil, fmt.Errorf("ACL: %w", ErrMalformed)
	}
	return acls, nil
}
