package proto

// Stat is a node's metadata as the protocol sends it.
type Stat struct {
	Czxid, Mzxid                int64
	Ctime, Mtime                int64 // milliseconds since 1970
	Version, Cversion, Aversion int32
	EphemeralOwner              int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// ACL grants permissions to one identity.
type ACL struct {
	Perms      int32
	Scheme, ID string
}

// ConnectRequest opens or re-opens a session. HasReadOnly is false for clients older than 3.4.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    int64
	TimeoutMs       int32
	SessionID       int64
	Password        []byte
	ReadOnly        bool
	HasReadOnly     bool
}

// Header stands before every request after the first.
type Header struct {
	Xid int32
	Op  Op
}

// Request is the body of one request, typed by its operation.
type Request interface{ isRequest() }

// CreateRequest covers create, create2, createContainer and createTTL; TTL is -1 except for createTTL.
type CreateRequest struct {
	Op    Op
	Path  string
	Data  []byte // nil when the client sent null
	ACL   []ACL
	Flags int32
	TTL   int64 // milliseconds
}

// PathRequest covers the operations that carry a path alone (sync, getACL, deleteContainer, getEphemerals,
// getAllChildrenNumber).
type PathRequest struct{ Path string }

// DeleteRequest removes a node; Version -1 means any.
type DeleteRequest struct {
	Path    string
	Version int32
}

// SetDataRequest replaces a node's data; Version -1 means any.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32
}

// SetACLRequest replaces a node's ACL; Version is compared with the ACL version.
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32
}

// CheckRequest demands that a node has Version (-1: exists).
type CheckRequest struct {
	Path    string
	Version int32
}

// ReadRequest covers exists, getData, getChildren and getChildren2.
type ReadRequest struct {
	Path  string
	Watch bool
}

// MultiRequest is a list of operations; each has its own type.
type MultiRequest struct{ Ops []MultiOp }

// MultiOp is one operation of a multi or multiRead.
type MultiOp struct {
	Op   Op
	Body Request
}

// SetWatchesRequest re-registers the watches of a client that reconnected (setWatches and setWatches2).
type SetWatchesRequest struct {
	RelativeZxid                                   int64
	Data, Exist, Child, Persistent, PersistentTree []string
	Second                                         bool // setWatches2, which has the last two
}

// WatchRequest covers addWatch (Mode is the watch mode), removeWatches and checkWatches (Mode is the watcher type).
type WatchRequest struct {
	Path string
	Mode int32
}

// AuthRequest adds an identity to the connection.
type AuthRequest struct {
	Type   int32
	Scheme string
	Auth   []byte
}

// SASLRequest is one step of an exchange that authenticates the connection.
type SASLRequest struct{ Token []byte }

// EmptyRequest covers ping, closeSession, whoAmI and what is refused unread (reconfig).
type EmptyRequest struct{}

func (*CreateRequest) isRequest()     {}
func (*PathRequest) isRequest()       {}
func (*DeleteRequest) isRequest()     {}
func (*SetDataRequest) isRequest()    {}
func (*SetACLRequest) isRequest()     {}
func (*CheckRequest) isRequest()      {}
func (*ReadRequest) isRequest()       {}
func (*MultiRequest) isRequest()      {}
func (*SetWatchesRequest) isRequest() {}
func (*WatchRequest) isRequest()      {}
func (*AuthRequest) isRequest()       {}
func (*SASLRequest) isRequest()       {}
func (*EmptyRequest) isRequest()      {}
