package zkshell

import (
	"fmt"
	"strconv"

	"barnabas/zkstate/embedded/proto"
)

// The flags of create, and the longest life that a TTL node can have.
const (
	flagEphemeral, flagSequential, flagContainer, flagTTL, flagTTLSequential = 1, 2, 4, 5, 6
	maxTTL                                                                   = 0x00ffffffffff
)

func (s *shell) create(p parsed) error {
	req, err := createMode(p)
	if err != nil {
		return err
	}
	path := p.args[1]
	checked := path
	if p.has('s') {
		checked += "1" // what is added makes "/a/" a path
	}
	if err := validatePath(checked); err != nil {
		return err
	}
	req.Path = s.zk.full(path)
	if len(p.args) > 2 {
		req.Data = []byte(p.args[2])
	}
	req.ACL = []proto.ACL{{Perms: proto.PermAll, Scheme: "world", ID: "anyone"}}
	if len(p.args) > 3 {
		if req.ACL = s.parseACL(p.args[3]); len(req.ACL) == 0 {
			return s.badACL()
		}
	}
	r, err := s.zk.call(req.Op, req)
	if isCode(err, proto.InvalidACL) {
		fmt.Fprintln(s.stderr, keeperText(proto.InvalidACL, path))
	}
	if err != nil {
		return explain(err, path)
	}
	fmt.Fprintf(s.stderr, "Created %s\n", s.zk.strip(r.String()))
	return r.Err()
}

// badACL reports an ACL of which nothing was left. The original's client finds out before it asks, and then names no path.
func (s *shell) badACL() error {
	fmt.Fprintln(s.stderr, "KeeperErrorCode = InvalidACL")
	return failf("Acl is not valid : null")
}

// createMode turns the options into an operation and its flags.
func createMode(p parsed) (*proto.CreateRequest, error) {
	e, sq, c, t := p.has('e'), p.has('s'), p.has('c'), p.has('t')
	req := &proto.CreateRequest{Op: proto.OpCreate, TTL: -1}
	if c && (e || sq) {
		return nil, failf("-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.")
	}
	if t {
		ttl, err := strconv.ParseInt(p.values['t'], 10, 64)
		switch {
		case err != nil:
			return nil, failf("-t argument must be a long value")
		case e:
			return nil, failf("TTLs cannot be used with Ephemeral znodes")
		case c:
			return nil, failf("TTLs cannot be used with Container znodes")
		case ttl <= 0 || ttl > maxTTL:
			return nil, failf("ttl must be positive and cannot be larger than: %d", int64(maxTTL))
		}
		req.Op, req.TTL, req.Flags = proto.OpCreateTTL, ttl, flagTTL
		if sq {
			req.Flags = flagTTLSequential
		}
		return req, nil
	}
	if c {
		req.Op, req.Flags = proto.OpCreateContainer, flagContainer
		return req, nil
	}
	if e {
		req.Flags |= flagEphemeral
	}
	if sq {
		req.Flags |= flagSequential
	}
	return req, nil
}
