package proto

// AppendConnect appends the record that opens or re-opens a session.
func AppendConnect(dst []byte, c ConnectRequest) []byte {
	dst = AppendInt64(AppendInt32(dst, c.ProtocolVersion), c.LastZxidSeen)
	dst = AppendInt64(AppendInt32(dst, c.TimeoutMs), c.SessionID)
	dst = AppendBuffer(dst, c.Password)
	if c.HasReadOnly {
		dst = AppendBool(dst, c.ReadOnly)
	}
	return dst
}

// AppendRequest appends the body of a request: the inverse of DecodeRequest.
func AppendRequest(dst []byte, req Request) []byte {
	switch r := req.(type) {
	case *CreateRequest:
		dst = AppendBuffer(AppendString(dst, r.Path), r.Data)
		dst = AppendInt32(AppendACLs(dst, r.ACL), r.Flags)
		if r.Op == OpCreateTTL {
			dst = AppendInt64(dst, r.TTL)
		}
	case *PathRequest:
		dst = AppendString(dst, r.Path)
	case *DeleteRequest:
		dst = AppendInt32(AppendString(dst, r.Path), r.Version)
	case *SetDataRequest:
		dst = AppendInt32(AppendBuffer(AppendString(dst, r.Path), r.Data), r.Version)
	case *SetACLRequest:
		dst = AppendInt32(AppendACLs(AppendString(dst, r.Path), r.ACL), r.Version)
	case *CheckRequest:
		dst = AppendInt32(AppendString(dst, r.Path), r.Version)
	case *ReadRequest:
		dst = AppendBool(AppendString(dst, r.Path), r.Watch)
	case *MultiRequest:
		for _, op := range r.Ops {
			dst = AppendRequest(AppendMultiHeader(dst, op.Op, false, -1), op.Body)
		}
		dst = AppendMultiHeader(dst, OpError, true, -1)
	case *SetWatchesRequest:
		dst = AppendStrings(AppendStrings(AppendStrings(AppendInt64(dst, r.RelativeZxid), r.Data), r.Exist), r.Child)
		if r.Second {
			dst = AppendStrings(AppendStrings(dst, r.Persistent), r.PersistentTree)
		}
	case *WatchRequest:
		dst = AppendInt32(AppendString(dst, r.Path), r.Mode)
	case *AuthRequest:
		dst = AppendBuffer(AppendString(AppendInt32(dst, r.Type), r.Scheme), r.Auth)
	case *SASLRequest:
		dst = AppendBuffer(dst, r.Token)
	}
	return dst
}
