package embedded

import (
	"go.etcd.io/bbolt"

	"barnabas/zkstate/embedded/core"
	"barnabas/zkstate/embedded/proto"
)

// What members of an ensemble tell each other of the tree: core.Changes as bytes, in the protocol's own elements. A snapshot is the secret
// that keys the sessions' passwords, and all there is as one change.

func appendChanges(dst []byte, ch core.Changes) []byte {
	dst = proto.AppendInt32(proto.AppendInt64(dst, ch.Zxid), int32(len(ch.Nodes)))
	for _, n := range ch.Nodes {
		dst = proto.AppendBuffer(proto.AppendString(dst, n.Path), appendNode(nil, n))
		if dst = proto.AppendBool(dst, n.HasData); n.HasData {
			dst = proto.AppendBuffer(dst, n.Data)
		}
	}
	dst = proto.AppendInt32(proto.AppendStrings(dst, ch.Removed), int32(len(ch.Sessions)))
	for _, s := range ch.Sessions {
		dst = proto.AppendInt64(proto.AppendInt64(dst, s.ID), s.TimeoutMs)
	}
	dst = proto.AppendInt32(dst, int32(len(ch.Closed)))
	for _, id := range ch.Closed {
		dst = proto.AppendInt64(dst, id)
	}
	return dst
}

func decodeChanges(b []byte) (core.Changes, error) {
	r := proto.NewReader(b)
	ch := core.Changes{Zxid: r.Int64()}
	for n := r.Int32(); n > 0 && r.Err() == nil; n-- {
		path, node := r.String(), r.Buffer()
		rec, err := decodeNode(path, node, []byte{0})
		if r.Err() != nil {
			break
		}
		if err != nil {
			return ch, err
		}
		if rec.HasData = r.Bool(); rec.HasData {
			rec.Data = r.Buffer()
		}
		ch.Nodes = append(ch.Nodes, rec)
	}
	ch.Removed = r.Strings()
	for n := r.Int32(); n > 0 && r.Err() == nil; n-- {
		ch.Sessions = append(ch.Sessions, core.SessionRecord{ID: r.Int64(), TimeoutMs: r.Int64()})
	}
	for n := r.Int32(); n > 0 && r.Err() == nil; n-- {
		ch.Closed = append(ch.Closed, r.Int64())
	}
	return ch, r.Err()
}

// Apply is quorum.State's.
func (s *store) Apply(tx *bbolt.Tx, proposal []byte) error {
	ch, err := decodeChanges(proposal)
	if err != nil {
		return err
	}
	return s.write(tx, ch)
}

// Snapshot is quorum.State's.
func (s *store) Snapshot(tx *bbolt.Tx) ([]byte, error) {
	st, secret, err := read(tx)
	for i := range st.Nodes {
		st.Nodes[i].HasData = true
	}
	return appendChanges(proto.AppendBuffer(nil, secret), core.Changes{Zxid: st.Zxid, Nodes: st.Nodes, Sessions: st.Sessions}), err
}

// Restore is quorum.State's.
func (s *store) Restore(tx *bbolt.Tx, snapshot []byte) error {
	r := proto.NewReader(snapshot)
	secret := r.Buffer()
	if r.Err() != nil || len(secret) != secretBytes {
		return proto.ErrMalformed
	}
	ch, err := decodeChanges(snapshot[4+secretBytes:])
	if err != nil {
		return err
	}
	for _, name := range [][]byte{bucketStat, bucketData, bucketSessions} {
		if err := tx.DeleteBucket(name); err != nil {
			return err
		}
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	if err := tx.Bucket(bucketMeta).Put(keySecret, secret); err != nil {
		return err
	}
	return s.write(tx, ch)
}
