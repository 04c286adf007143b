package core

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"barnabas/zkstate/embedded/proto"
)

// identity is one of the names a connection goes by.
type identity struct{ scheme, id string }

// permits decides whether a connection may do something to a node. A nil connection is the server itself.
func (m *Machine) permits(c *conn, acl []proto.ACL, perm int32) bool {
	if c == nil || len(acl) == 0 || slices.ContainsFunc(c.auth, func(i identity) bool { return i.scheme == "super" }) {
		return true
	}
	for _, a := range acl {
		if a.Perms&perm == 0 {
			continue
		}
		if a.Scheme == "world" && a.ID == "anyone" {
			return true
		}
		for _, who := range c.auth {
			if who.scheme == a.Scheme && matches(who, a.ID) {
				return true
			}
		}
	}
	return false
}

func matches(who identity, aclID string) bool {
	switch who.scheme {
	case "digest", "x509":
		return who.id == aclID
	case "ip":
		prefix, err := ipPrefix(aclID)
		addr, addrErr := netip.ParseAddr(who.id)
		return err == nil && addrErr == nil && prefix.Contains(addr.Unmap())
	}
	return false
}

// ipPrefix reads "address" or "address/bits".
func ipPrefix(s string) (netip.Prefix, error) {
	host, bits, cut := strings.Cut(s, "/")
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}, err
	}
	addr = addr.Unmap()
	if !cut {
		return addr.Prefix(addr.BitLen())
	}
	n, err := strconv.Atoi(bits)
	if err != nil {
		return netip.Prefix{}, err
	}
	return addr.Prefix(n)
}

// effectiveACL checks the ACL that a client wants to set, drops repeated entries, and puts the client's own identities in place
// of the scheme "auth".
func (m *Machine) effectiveACL(c *conn, want []proto.ACL) ([]proto.ACL, proto.Code) {
	if len(want) == 0 {
		return nil, proto.InvalidACL
	}
	var out []proto.ACL
	for i, a := range want {
		if slices.Contains(want[:i], a) {
			continue
		}
		switch {
		case a.Scheme == "world" && a.ID == "anyone", a.Scheme == "digest" && validDigestID(a.ID), a.Scheme == "ip" && validIPID(a.ID),
			a.Scheme == "x509" && a.ID != "":
			out = append(out, a)
		case a.Scheme == "auth":
			known := false
			for _, who := range c.auth {
				if who.scheme == "digest" || who.scheme == "x509" {
					known = true
					out = append(out, proto.ACL{Perms: a.Perms, Scheme: who.scheme, ID: who.id})
				}
			}
			if !known {
				return nil, proto.InvalidACL
			}
		default:
			return nil, proto.InvalidACL
		}
	}
	return out, proto.OK
}

func validDigestID(id string) bool {
	user, digest, ok := strings.Cut(id, ":")
	return ok && user != "" && digest != "" && !strings.Contains(digest, ":")
}

func validIPID(id string) bool {
	_, err := ipPrefix(id)
	return err == nil
}

// Digest is the identity that "user:password" gives under the scheme digest.
func Digest(userPassword string) string {
	user, _, _ := strings.Cut(userPassword, ":")
	sum := sha1.Sum([]byte(userPassword))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// authenticate adds an identity to a connection. Its answer carries no zxid, and a refusal ends the connection.
func (m *Machine) authenticate(c *conn, h proto.Header, req proto.Request) {
	answer := func(code proto.Code) {
		m.send(c.id, proto.Seal(proto.AppendReplyHeader(proto.Frame(), h.Xid, 0, code)))
	}
	r, ok := req.(*proto.AuthRequest)
	if !ok || (r.Scheme != "digest" && r.Scheme != "ip") {
		answer(proto.AuthFailed)
		m.hangUp(c.id)
		return
	}
	if r.Scheme == "digest" { // the address is known from the start
		digest := Digest(string(r.Auth))
		if m.opt.SuperDigest != "" && digest == m.opt.SuperDigest {
			c.add(identity{"super", ""})
		}
		c.add(identity{"digest", digest})
	}
	answer(proto.OK)
}

// Certified tells by which name a client's certificate knows it, which the server has verified. It is to follow Connect.
func (m *Machine) Certified(id Conn, name string) {
	if c := m.conns[id]; c != nil {
		c.add(identity{"x509", name})
	}
}

func (c *conn) add(who identity) {
	if !slices.Contains(c.auth, who) {
		c.auth = append(c.auth, who)
	}
}

// whoAmI encodes the identities of a connection, digests without their secret part.
func (c *conn) whoAmI(b []byte) []byte {
	b = proto.AppendInt32(b, int32(len(c.auth)))
	for _, who := range c.auth {
		user := who.id
		if who.scheme == "digest" {
			user, _, _ = strings.Cut(user, ":")
		}
		b = proto.AppendString(proto.AppendString(b, who.scheme), user)
	}
	return b
}
