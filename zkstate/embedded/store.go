package embedded

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"barnabas/zkstate/embedded/core"
	"barnabas/zkstate/embedded/proto"
)

// The file of the store, and what is in it. Metadata and data of a node lie apart, so that creating a child rewrites only a
// few bytes of its parent, whatever data the parent has.
//
//	meta      "format" → 1 byte; "zxid" → int64; "secret" → 16 bytes that key the passwords of sessions
//	stat      path → metadata and ACL (see appendNode)
//	data      path → the data, preceded by 1, or a single 0 for null
//	sessions  id as int64 → timeout in milliseconds as int64
const (
	storeFile   = "embedded-zookeeper.db"
	storeFormat = 1
	secretBytes = 16
)

var (
	bucketMeta, bucketStat, bucketData, bucketSessions = []byte("meta"), []byte("stat"), []byte("data"), []byte("sessions")
	keyFormat, keyZxid, keySecret                      = []byte("format"), []byte("zxid"), []byte("secret")
)

// store is the durable copy of the core's state.
type store struct {
	db     *bbolt.DB
	secret []byte
}

// openStore opens or begins the store in dir and reads all of it. It refuses a directory that holds the data of an Apache
// ZooKeeper and none of ours: an empty tree in place of that one would be taken for lost data.
func openStore(dir string) (*store, core.State, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, core.State{}, err
	}
	path := filepath.Join(dir, storeFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if foreign, _ := filepath.Glob(filepath.Join(dir, "version-2", "*.*")); len(foreign) > 0 {
			return nil, core.State{}, fmt.Errorf("%s holds the data of an Apache ZooKeeper, which the embedded server cannot read; choose another dataDir", dir)
		}
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, core.State{}, fmt.Errorf("open %s: %w", path, err)
	}
	s := &store{db: db}
	st, err := s.load()
	if err != nil {
		_ = db.Close()
		return nil, core.State{}, fmt.Errorf("read %s: %w", path, err)
	}
	return s, st, nil
}

// size is the length of the store's file in bytes, 0 when it cannot be told.
func (s *store) size() int64 {
	info, err := os.Stat(s.db.Path())
	if err != nil {
		return 0
	}
	return info.Size()
}

func (s *store) close() error { return s.db.Close() }

// load reads everything, after making the buckets and the secret of a new store.
func (s *store) load() (core.State, error) {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketStat, bucketData, bucketSessions} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		if meta.Get(keyFormat) == nil {
			secret := make([]byte, secretBytes)
			_, _ = rand.Read(secret) // never fails
			return errors.Join(meta.Put(keyFormat, []byte{storeFormat}), meta.Put(keySecret, secret), meta.Put(keyZxid, make([]byte, 8)))
		}
		return nil
	})
	if err != nil {
		return core.State{}, err
	}
	return s.state()
}

// state reads everything.
func (s *store) state() (st core.State, err error) {
	err = s.db.View(func(tx *bbolt.Tx) (err error) {
		st, s.secret, err = read(tx)
		return err
	})
	return st, err
}

func read(tx *bbolt.Tx) (st core.State, secret []byte, err error) {
	meta := tx.Bucket(bucketMeta)
	if f := meta.Get(keyFormat); len(f) != 1 || f[0] != storeFormat {
		return st, nil, fmt.Errorf("format %v is not %d", f, storeFormat)
	}
	zxid := meta.Get(keyZxid)
	if len(zxid) != 8 || len(meta.Get(keySecret)) != secretBytes {
		return st, nil, errors.New("damaged bucket meta")
	}
	st.Zxid = int64(binary.BigEndian.Uint64(zxid))
	data := tx.Bucket(bucketData)
	if err := tx.Bucket(bucketStat).ForEach(func(path, value []byte) error {
		rec, err := decodeNode(string(path), value, data.Get(path))
		st.Nodes = append(st.Nodes, rec)
		return err
	}); err != nil {
		return st, nil, err
	}
	err = tx.Bucket(bucketSessions).ForEach(func(id, timeout []byte) error {
		if len(id) != 8 || len(timeout) != 8 {
			return fmt.Errorf("damaged session %x", id)
		}
		st.Sessions = append(st.Sessions, core.SessionRecord{
			ID: int64(binary.BigEndian.Uint64(id)), TimeoutMs: int64(binary.BigEndian.Uint64(timeout)),
		})
		return nil
	})
	return st, append([]byte(nil), meta.Get(keySecret)...), err
}

// commit makes changes durable, all or none; it returns after the sync.
func (s *store) commit(ch core.Changes) error {
	return s.db.Update(func(tx *bbolt.Tx) error { return s.write(tx, ch) })
}

// write puts changes into a transaction.
func (s *store) write(tx *bbolt.Tx, ch core.Changes) error {
	if err := tx.Bucket(bucketMeta).Put(keyZxid, proto.AppendInt64(nil, ch.Zxid)); err != nil {
		return err
	}
	stat, data, sessions := tx.Bucket(bucketStat), tx.Bucket(bucketData), tx.Bucket(bucketSessions)
	for _, n := range ch.Nodes {
		if err := stat.Put([]byte(n.Path), appendNode(nil, n)); err != nil {
			return fmt.Errorf("node %q: %w", n.Path, err)
		}
		if !n.HasData {
			continue
		}
		if err := data.Put([]byte(n.Path), appendData(nil, n.Data)); err != nil {
			return fmt.Errorf("data of %q: %w", n.Path, err)
		}
	}
	for _, path := range ch.Removed {
		if err := errors.Join(stat.Delete([]byte(path)), data.Delete([]byte(path))); err != nil {
			return err
		}
	}
	for _, rec := range ch.Sessions {
		if err := sessions.Put(proto.AppendInt64(nil, rec.ID), proto.AppendInt64(nil, rec.TimeoutMs)); err != nil {
			return err
		}
	}
	for _, id := range ch.Closed {
		if err := sessions.Delete(proto.AppendInt64(nil, id)); err != nil {
			return err
		}
	}
	return nil
}

// metaBytes is the size of the fixed part of a node's value.
var metaBytes = binary.Size(core.Meta{})

// appendNode encodes metadata (the fields of core.Meta in order, big endian), then the ACL as the protocol encodes it.
func appendNode(dst []byte, n core.NodeRecord) []byte {
	dst, _ = binary.Append(dst, binary.BigEndian, n.Meta) // fixed size: cannot fail
	return proto.AppendACLs(dst, n.ACL)
}

func appendData(dst, data []byte) []byte {
	if data == nil {
		return append(dst, 0)
	}
	return append(append(dst, 1), data...)
}

// decodeNode reads a node back; the slices of the record are copies.
func decodeNode(path string, value, data []byte) (core.NodeRecord, error) {
	rec := core.NodeRecord{Path: path}
	if len(value) < metaBytes || len(data) == 0 || data[0] > 1 || data[0] == 0 && len(data) > 1 {
		return rec, fmt.Errorf("damaged node %q", path)
	}
	if _, err := binary.Decode(value, binary.BigEndian, &rec.Meta); err != nil {
		return rec, fmt.Errorf("damaged node %q: %w", path, err)
	}
	acl, err := proto.DecodeACLs(value[metaBytes:])
	if err != nil {
		return rec, fmt.Errorf("damaged ACL of node %q: %w", path, err)
	}
	rec.ACL = acl
	if data[0] == 1 {
		rec.Data = append([]byte{}, data[1:]...)
	}
	return rec, nil
}
