package broker

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/broker/commitlog"
	"barnabas/broker/vfs"
	"barnabas/zkstate"
	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
	"barnabas/zkstate/zktest"
)

// killedWhileRegistered registers a broker as a process that is killed then: its session lives on, and nobody by it.
func killedWhileRegistered(t *testing.T, addr, path string) zkstate.SessionKey {
	conn, err := client.Dial(addr, 30*time.Second, client.Session{}, nil)
	require.NoError(t, err)
	_, err = conn.Call(proto.OpCreate, &proto.CreateRequest{Op: proto.OpCreate, Path: path, ACL: []proto.ACL{{Perms: proto.PermAll, Scheme: "world", ID: "anyone"}}, Flags: 1})
	conn.Drop()
	require.NoError(t, err)
	return zkstate.SessionKey{ID: conn.Session().ID, Password: conn.Session().Password}
}

func TestTheSessionOfTheLifeBeforeIsEndedAndThatOfACopysOriginalIsNot(t *testing.T) {
	zktest.Each(t, func(t *testing.T, srv zktest.Server) {
		quiet := logrus.New()
		quiet.SetOutput(io.Discard)
		log := logrus.NewEntry(quiet)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		zk, err := zkstate.Connect(zkstate.Config{Servers: srv.Addr(), SessionTimeout: 30 * time.Second, ConnectTimeout: 30 * time.Second, Log: log})
		require.NoError(t, err)
		defer zk.Close()
		require.NoError(t, zk.MakePersistentPaths(ctx))
		id := identity{brokerID: 7, clusterID: "c"}
		path := zkstate.BrokerIDPath(id.brokerID)
		open := func(dir string, locked func([]commitlog.DirInfo)) *commitlog.Manager {
			logs, err := commitlog.Open(commitlog.ManagerConfig{Dirs: []string{dir}, FS: vfs.OS, Default: commitlog.DefaultConfig(), Now: time.Now, Log: log, OnLocked: locked})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, logs.Close()) })
			return logs
		}
		notes := newSessionNotes(zk, vfs.OS, id, log)
		if notes.boot == "" {
			t.Skip("there are no notes on this system")
		}
		asSuccessor := func(dirs []commitlog.DirInfo) { notes.endPredecessor(ctx, dirs) }

		key := killedWhileRegistered(t, srv.Addr(), path)
		dir := filepath.Join(t.TempDir(), "logs")
		logs := open(dir, nil)
		require.NoError(t, notes.write(dir, sessionNote{boot: notes.boot, lock: logs.Dirs()[0].Lock, broker: id.brokerID, cluster: id.clusterID, key: key}))
		copied := filepath.Join(t.TempDir(), "logs")
		require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
		open(copied, asSuccessor)
		_, err = zk.One(ctx, zkstate.Exists(path))
		require.NoError(t, err)

		require.NoError(t, logs.Close()) // as the end of its process frees the lock
		moved := filepath.Join(t.TempDir(), "moved")
		require.NoError(t, os.Rename(dir, moved))
		logs = open(moved, asSuccessor)
		_, err = zk.One(ctx, zkstate.Exists(path))
		require.ErrorIs(t, err, zkstate.ErrNoNode)

		// Its own life now.
		stat, err := zk.RegisterEphemeral(ctx, path, nil)
		require.NoError(t, err)
		notes.leave(logs.Dirs(), stat.EphemeralOwner)
		info, err := os.Stat(filepath.Join(moved, noteFile))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode(), "who reads it can speak for the session")
		left, err := notes.read(moved)
		require.NoError(t, err)
		assert.True(t, left.tellsOfPredecessor(vantage{boot: notes.boot, lock: logs.Dirs()[0].Lock, broker: 7, cluster: "c", holder: stat.EphemeralOwner}))
		newSessionNotes(zk, vfs.OS, id, log).remove(logs.Dirs())
		require.FileExists(t, filepath.Join(moved, noteFile), "another's note")
		notes.remove(logs.Dirs())
		require.NoFileExists(t, filepath.Join(moved, noteFile))
	})
}

func TestANoteThatCannotBeReadOrWrittenCostsNothing(t *testing.T) {
	srv := zktest.Embedded(t)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	log := logrus.NewEntry(quiet)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	zk, err := zkstate.Connect(zkstate.Config{Servers: srv.Addr(), SessionTimeout: 10 * time.Second, Log: log})
	require.NoError(t, err)
	defer zk.Close()
	require.NoError(t, zk.MakePersistentPaths(ctx))
	stat, err := zk.RegisterEphemeral(ctx, zkstate.BrokerIDPath(7), nil)
	require.NoError(t, err)
	dir := t.TempDir()
	dirs := []commitlog.DirInfo{{Path: dir, Lock: "1:2"}}
	notes := newSessionNotes(zk, vfs.OS, identity{brokerID: 7, clusterID: "c"}, log)
	path := filepath.Join(dir, noteFile)
	for _, content := range []string{"", "{", `{"version":1,"session":"x"}`, string(make([]byte, maxNote+1))} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		notes.endPredecessor(ctx, dirs)
		require.FileExists(t, path)
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o755))
	notes.endPredecessor(ctx, dirs)
	notes.leave(dirs, stat.EphemeralOwner)
	notes.remove(dirs)
	after, err := zk.One(ctx, zkstate.Exists(zkstate.BrokerIDPath(7)))
	require.NoError(t, err)
	require.Equal(t, stat.Czxid, after.Stat.Czxid)
}
