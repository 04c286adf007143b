package zkstate

import (
	"errors"
	"fmt"
)

// Errors of operations. An operation's error is, or wraps, one of these; they are ZooKeeper's own codes except for
// ErrClosed, ErrNoSession and ErrTooLarge.
var (
	ErrNoNode                  = errors.New("zookeeper: node does not exist")
	ErrNodeExists              = errors.New("zookeeper: node already exists")
	ErrBadVersion              = errors.New("zookeeper: version conflict")
	ErrNotEmpty                = errors.New("zookeeper: node has children")
	ErrNoChildrenForEphemerals = errors.New("zookeeper: ephemeral nodes may not have children")
	ErrNoAuth                  = errors.New("zookeeper: not authorised")
	ErrInvalidACL              = errors.New("zookeeper: invalid ACL")
	ErrAuthFailed              = errors.New("zookeeper: authentication failed")
	ErrBadArguments            = errors.New("zookeeper: bad arguments")
	// ErrServer is the answer of a server that refuses for a reason of its own (a quota, an operation it lacks).
	ErrServer = errors.New("zookeeper: refused by the server")
	// ErrConnectionLoss is the answer of a write whose connection broke before the server answered: the write may
	// have taken effect.
	ErrConnectionLoss = errors.New("zookeeper: connection lost, the outcome is unknown")
	// ErrSessionExpired is the answer of every operation of a session that is over. A write may have taken effect
	// before the session ended.
	ErrSessionExpired = errors.New("zookeeper: session expired")
	// ErrRolledBack is the answer of an operation inside a multi that failed because of another one.
	ErrRolledBack = errors.New("zookeeper: rolled back with the rest of the multi")
	// ErrFenced is the answer of a fenced write by a controller that is not the controller any more.
	ErrFenced = errors.New("zookeeper: controller epoch has moved on")
	// ErrTooLarge is the answer of an operation that exceeds what a server takes in one packet; it was not sent.
	ErrTooLarge = errors.New("zookeeper: larger than a server takes in one packet")
	// ErrNoSession is the answer of Connect when no server gave a session in time.
	ErrNoSession = errors.New("no ZooKeeper session")
	// ErrClosed is the answer of every operation after Close.
	ErrClosed = errors.New("zookeeper: client closed")
)

// OpKind names what an Op does.
type OpKind int8

// The kinds of operations. The creating ones make the node with the ACL of the client's policy unless Op.ACL is set.
const (
	OpGet OpKind = iota
	OpExists
	OpChildren
	OpCreate
	OpCreateEphemeral
	OpCreateSequential
	OpCreateEphemeralSequential
	OpSet
	OpDelete
	OpCheck // only inside a multi
	OpGetACL
	OpSetACL
	OpSync // brings the server of this session up to date with the leader
)

var opNames = [...]string{"get", "exists", "children", "create", "create ephemeral", "create sequential",
	"create ephemeral sequential", "set", "delete", "check", "get ACL", "set ACL", "sync"}

func (k OpKind) String() string {
	if k < 0 || int(k) >= len(opNames) {
		return fmt.Sprintf("op(%d)", int8(k))
	}
	return opNames[k]
}

// Writes tells whether the operation can change the tree.
func (k OpKind) Writes() bool {
	switch k {
	case OpCreate, OpCreateEphemeral, OpCreateSequential, OpCreateEphemeralSequential, OpSet, OpDelete, OpSetACL:
		return true
	}
	return false
}

// AnyVersion as Op.Version makes a set, delete or check unconditional.
const AnyVersion int32 = -1

// Op is one operation. Paths are the cluster's: a chroot of the connect string is added and taken off by the Client.
type Op struct {
	Kind    OpKind
	Path    string
	Data    []byte // create, set; nil is a node without data, as Kafka's directories are
	Version int32  // set, delete, check: the version expected, or AnyVersion
	Watch   bool   // get, exists, children: also leave a watch, atomically with the read
	ACL     []ACL  // set ACL; create: overrides the policy
}

// Constructors of the operations, in the order of their kinds.

// Get reads a node's data.
func Get(path string) Op { return Op{Kind: OpGet, Path: path} }

// Exists reads a node's Stat; a missing node answers ErrNoNode.
func Exists(path string) Op { return Op{Kind: OpExists, Path: path} }

// Children lists the names of a node's children, in no order.
func Children(path string) Op { return Op{Kind: OpChildren, Path: path} }

// Create makes a persistent node.
func Create(path string, data []byte) Op { return Op{Kind: OpCreate, Path: path, Data: data} }

// CreateEphemeral makes a node that ends with the session.
func CreateEphemeral(path string, data []byte) Op {
	return Op{Kind: OpCreateEphemeral, Path: path, Data: data}
}

// CreateSequential makes a persistent node whose name the server ends with a number; Result.Path has the name.
func CreateSequential(path string, data []byte) Op {
	return Op{Kind: OpCreateSequential, Path: path, Data: data}
}

// Set replaces a node's data if its version is the one given.
func Set(path string, data []byte, version int32) Op {
	return Op{Kind: OpSet, Path: path, Data: data, Version: version}
}

// Delete removes a node without children if its version is the one given.
func Delete(path string, version int32) Op { return Op{Kind: OpDelete, Path: path, Version: version} }

// Check makes a multi fail unless the node has the version given.
func Check(path string, version int32) Op { return Op{Kind: OpCheck, Path: path, Version: version} }

// Sync makes later reads of this session see everything that was committed before it.
func Sync(path string) Op { return Op{Kind: OpSync, Path: path} }

// Watched is the same read leaving a watch.
func (o Op) Watched() Op { o.Watch = true; return o }

// Stat is a node's metadata; times are in milliseconds since 1970.
type Stat struct {
	Czxid, Mzxid, Ctime, Mtime  int64
	Version, Cversion, Aversion int32
	EphemeralOwner              int64 // session id, 0 for a persistent node
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// Result answers one Op.
type Result struct {
	Err      error
	Path     string // the node's path; of a sequential create the name the server gave
	Data     []byte // get; nil for a node without data
	Stat     Stat   // get, exists, children, set, get ACL
	Children []string
	ACL      []ACL
}

// ACL permissions.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)

// ACL is one entry of a node's access list.
type ACL struct {
	Perms      int32
	Scheme, ID string
}
