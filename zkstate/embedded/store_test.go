package embedded

import (
	"io"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/core"
	"barnabas/zkstate/embedded/proto"
)

func testConfig(t *testing.T) Config {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return Config{Addr: "127.0.0.1:0", DataDir: t.TempDir(), Log: logrus.NewEntry(log)}
}

func createRequest(path string) *proto.CreateRequest {
	return &proto.CreateRequest{Op: proto.OpCreate, Path: path, ACL: []proto.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, TTL: -1}
}

// When the disk fails, what memory already holds was never answered, and nobody can read it: the server is gone.
func TestADiskErrorStopsTheServerBeforeAnybodyHearsOfTheWrite(t *testing.T) {
	cfg := testConfig(t)
	srv, err := Start(cfg)
	require.NoError(t, err)
	c, err := client.Dial(srv.Addr(), 50*time.Second, client.Session{}, nil)
	require.NoError(t, err)
	_, err = c.Call(proto.OpCreate, createRequest("/kept"))
	require.NoError(t, err)

	require.NoError(t, srv.store.db.Close()) // every later transaction fails
	_, err = c.Do(proto.OpCreate, createRequest("/lost"))
	require.ErrorIs(t, err, client.ErrClosed)
	<-srv.Done()
	require.ErrorContains(t, srv.Err(), "commit of zxid")
	_, err = client.Dial(srv.Addr(), time.Second, client.Session{}, nil)
	require.Error(t, err, "serves no more")
	c.Drop()
	require.NoError(t, srv.Close())

	srv, err = Start(cfg)
	require.NoError(t, err)
	defer srv.Close()
	c, err = client.Dial(srv.Addr(), 50*time.Second, c.Session(), nil)
	require.NoError(t, err, "the session is still good, and no zxid was seen that is not on disk")
	defer c.Close()
	_, err = c.Call(proto.OpExists, &proto.ReadRequest{Path: "/kept"})
	require.NoError(t, err)
	r, err := c.Do(proto.OpExists, &proto.ReadRequest{Path: "/lost"})
	require.NoError(t, err)
	require.Equal(t, proto.NoNode, r.Code)
}

func TestANodeReadsBackAsItWasStored(t *testing.T) {
	for _, want := range []core.NodeRecord{
		{Path: "/a", Meta: core.Meta{Czxid: 1, Mzxid: 2, Pzxid: 3, Ctime: 4, Mtime: 5, Version: 6, Creates: 7, ACLVersion: -1, Owner: -1 << 63}, ACL: []proto.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, Data: []byte("x")},
		{Path: "/null", ACL: []proto.ACL{}},
		{Path: "/empty", ACL: []proto.ACL{}, Data: []byte{}},
	} {
		value, data := appendNode(nil, want), appendData(nil, want.Data)
		got, err := decodeNode(want.Path, value, data)
		require.NoError(t, err)
		require.Equal(t, want, got)
		for cut := range value {
			_, err := decodeNode(want.Path, value[:cut], data)
			require.ErrorContains(t, err, want.Path)
		}
	}
}

func FuzzDecodeNode(f *testing.F) {
	rec := core.NodeRecord{Path: "/a", ACL: []proto.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, Data: []byte("x")}
	f.Add(appendNode(nil, rec), appendData(nil, rec.Data))
	f.Fuzz(func(t *testing.T, value, data []byte) {
		rec, err := decodeNode("/a", value, data)
		if err != nil {
			return
		}
		again, err := decodeNode("/a", appendNode(nil, rec), appendData(nil, rec.Data))
		require.NoError(t, err)
		require.Equal(t, rec, again)
	})
}
