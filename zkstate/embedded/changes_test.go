package embedded

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/zkstate/embedded/core"
	"barnabas/zkstate/embedded/proto"
)

var someChanges = core.Changes{
	Zxid: 1<<32 + 7,
	Nodes: []core.NodeRecord{
		{Path: "/a", Meta: core.Meta{Czxid: 3}, ACL: []proto.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, Data: []byte{1, 2}, HasData: true},
		{Path: "/null", Meta: core.Meta{Mzxid: 5}, ACL: []proto.ACL{}, HasData: true},
		{Path: "/ä", Meta: core.Meta{Version: 2}, ACL: []proto.ACL{}},
	},
	Removed:  []string{"/gone", "/gone/too"},
	Sessions: []core.SessionRecord{{ID: -1, TimeoutMs: 4000}},
	Closed:   []int64{7, 1 << 60},
}

func TestChangesAreReadAsTheyWereWritten(t *testing.T) {
	got, err := decodeChanges(appendChanges(nil, someChanges))
	require.NoError(t, err)
	require.Equal(t, someChanges, got)
	whole := appendChanges(nil, someChanges)
	for n := range whole {
		_, err := decodeChanges(whole[:n])
		require.Error(t, err, "of %d bytes", n)
	}
}

func FuzzChanges(f *testing.F) {
	f.Add(appendChanges(nil, someChanges))
	f.Fuzz(func(t *testing.T, b []byte) {
		ch, err := decodeChanges(b)
		if err != nil {
			return
		}
		again, err := decodeChanges(appendChanges(nil, ch))
		require.NoError(t, err)
		require.Equal(t, ch, again)
	})
}

func FuzzRelayed(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x20" + `{"protocol":"barnabas-relay-1"} `))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = readRelayed(bytes.NewReader(b)) })
}
