package proto

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var samples = []struct {
	op  Op
	req Request
}{
	{OpCreate, &CreateRequest{Op: OpCreate, Path: "/a", Data: []byte("x"), ACL: []ACL{{31, "world", "anyone"}}, Flags: 3, TTL: -1}},
	{OpCreateTTL, &CreateRequest{Op: OpCreateTTL, Path: "/a", Data: nil, ACL: []ACL{}, Flags: 5, TTL: 1000}},
	{OpDelete, &DeleteRequest{Path: "/a", Version: -1}},
	{OpSetData, &SetDataRequest{Path: "/a", Data: []byte{}, Version: 4}},
	{OpSetACL, &SetACLRequest{Path: "/a", ACL: []ACL{{1, "ip", "10.0.0.0/8"}, {2, "digest", "u:p"}}, Version: 0}},
	{OpGetData, &ReadRequest{Path: "/a", Watch: true}},
	{OpGetACL, &PathRequest{Path: "/"}},
	{OpCheck, &CheckRequest{Path: "/a", Version: 2}},
	{OpMulti, &MultiRequest{Ops: []MultiOp{
		{OpCheck, &CheckRequest{Path: "/c", Version: 1}}, {OpSetData, &SetDataRequest{Path: "/d", Data: []byte("y"), Version: -1}},
	}}},
	{OpMultiRead, &MultiRequest{Ops: []MultiOp{{OpGetChildren, &ReadRequest{Path: "/c"}}}}},
	{OpSetWatches, &SetWatchesRequest{RelativeZxid: 9, Data: []string{"/a"}, Exist: []string{}, Child: []string{"/b", "/c"}}},
	{OpSetWatches2, &SetWatchesRequest{RelativeZxid: 9, Data: []string{}, Exist: []string{}, Child: []string{}, Persistent: []string{"/p"}, PersistentTree: []string{"/t"}, Second: true}},
	{OpAddWatch, &WatchRequest{Path: "/a", Mode: 1}},
	{OpAuth, &AuthRequest{Scheme: "digest", Auth: []byte("u:p")}},
	{OpSASL, &SASLRequest{Token: []byte("username=")}},
	{OpPing, &EmptyRequest{}},
}

func TestARequestReadsBackAsItWasWritten(t *testing.T) {
	for _, s := range samples {
		body := AppendRequest(nil, s.req)
		got, err := DecodeRequest(s.op, body)
		require.NoError(t, err, "op %d", s.op)
		require.Equal(t, s.req, got, "op %d", s.op)
		for cut := range body {
			_, err := DecodeRequest(s.op, body[:cut])
			require.ErrorIs(t, err, ErrMalformed, "op %d cut at %d of %d", s.op, cut, len(body))
		}
	}
}

func TestALengthReservesNothing(t *testing.T) {
	huge := AppendInt32(AppendString(nil, "/a"), 0x7fffffff)
	allocated := testing.AllocsPerRun(10, func() { _, _ = DecodeRequest(OpSetData, huge) })
	require.Less(t, allocated, 20.0)
	_, err := DecodeRequest(OpSetACL, AppendInt32(AppendString(nil, "/a"), 0x7fffffff))
	require.ErrorIs(t, err, ErrMalformed)
	_, err = DecodeRequest(OpSetACL, AppendInt32(AppendString(nil, "/a"), -7))
	require.ErrorIs(t, err, ErrMalformed)
}

func TestOldClientsConnectWithoutTheReadOnlyByte(t *testing.T) {
	for _, want := range []ConnectRequest{
		{LastZxidSeen: 3, TimeoutMs: 1000, SessionID: 7, Password: make([]byte, 16)},
		{TimeoutMs: 1000, Password: []byte{}, HasReadOnly: true, ReadOnly: true},
	} {
		got, err := DecodeConnect(AppendConnect(nil, want))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func FuzzDecodeRequest(f *testing.F) {
	for _, s := range samples {
		f.Add(int32(s.op), AppendRequest(nil, s.req))
	}
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		req, err := DecodeRequest(Op(op), body)
		if err != nil {
			return
		}
		again := AppendRequest(nil, req)
		second, err := DecodeRequest(Op(op), again)
		require.NoError(t, err)
		require.Equal(t, again, AppendRequest(nil, second))
	})
}

func FuzzDecodeConnect(f *testing.F) {
	f.Add(AppendConnect(nil, ConnectRequest{TimeoutMs: 4000, Password: make([]byte, 16), HasReadOnly: true}))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if c, err := DecodeConnect(frame); err == nil {
			_, err := DecodeConnect(AppendConnect(nil, c))
			require.NoError(t, err)
		}
	})
}

func FuzzDecodeACLs(f *testing.F) {
	f.Add(AppendACLs(nil, []ACL{{31, "world", "anyone"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if acls, err := DecodeACLs(b); err == nil {
			_, err := DecodeACLs(AppendACLs(nil, acls))
			require.NoError(t, err)
		}
	})
}
