package proto

import "encoding/binary"

// Frame begins an answer: four bytes for the length, which Seal fills in.
func Frame() []byte { return make([]byte, 4, 128) }

// Seal writes the length into a frame that Frame began.
func Seal(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// AppendInt32 appends an int.
func AppendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

// AppendInt64 appends a long.
func AppendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

// AppendBool appends a boolean.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendBuffer appends a buffer, nil as null.
func AppendBuffer(dst, b []byte) []byte {
	if b == nil {
		return AppendInt32(dst, -1)
	}
	return append(AppendInt32(dst, int32(len(b))), b...)
}

// AppendString appends a string.
func AppendString(dst []byte, s string) []byte {
	return append(AppendInt32(dst, int32(len(s))), s...)
}

// AppendStrings appends a vector of strings.
func AppendStrings(dst []byte, list []string) []byte {
	dst = AppendInt32(dst, int32(len(list)))
	for _, s := range list {
		dst = AppendString(dst, s)
	}
	return dst
}

// AppendACLs appends a vector of ACL entries.
func AppendACLs(dst []byte, list []ACL) []byte {
	dst = AppendInt32(dst, int32(len(list)))
	for _, a := range list {
		dst = AppendString(AppendString(AppendInt32(dst, a.Perms), a.Scheme), a.ID)
	}
	return dst
}

// AppendStat appends a node's metadata.
func AppendStat(dst []byte, s Stat) []byte {
	dst = AppendInt64(AppendInt64(dst, s.Czxid), s.Mzxid)
	dst = AppendInt64(AppendInt64(dst, s.Ctime), s.Mtime)
	dst = AppendInt32(AppendInt32(AppendInt32(dst, s.Version), s.Cversion), s.Aversion)
	dst = AppendInt64(dst, s.EphemeralOwner)
	dst = AppendInt32(AppendInt32(dst, s.DataLength), s.NumChildren)
	return AppendInt64(dst, s.Pzxid)
}

// AppendReplyHeader appends the header of an answer.
func AppendReplyHeader(dst []byte, xid int32, zxid int64, code Code) []byte {
	return AppendInt32(AppendInt64(AppendInt32(dst, xid), zxid), int32(code))
}

// AppendMultiHeader appends the header of one result of a multi.
func AppendMultiHeader(dst []byte, op Op, done bool, err int32) []byte {
	return AppendInt32(AppendBool(AppendInt32(dst, int32(op)), done), err)
}

// Notification is the whole frame of a watch event; its zxid is always -1 and its state "connected", as in 3.8.
func Notification(t EventType, path string) []byte {
	f := AppendReplyHeader(Frame(), XidNotification, -1, OK)
	f = AppendInt32(AppendInt32(f, int32(t)), 3)
	return Seal(AppendString(f, path))
}

// ConnectResponse is the whole answer to a ConnectRequest. A zero session id and timeout tell the client that its session is
// gone. The last byte (readOnly) is sent to clients that know of it.
func ConnectResponse(timeoutMs int32, sessionID int64, password []byte, withReadOnly bool) []byte {
	f := AppendInt64(AppendInt32(AppendInt32(Frame(), 0), timeoutMs), sessionID)
	f = AppendBuffer(f, password)
	if withReadOnly {
		f = AppendBool(f, false)
	}
	return Seal(f)
}
