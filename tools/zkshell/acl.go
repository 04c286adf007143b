package zkshell

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
)

// permLetters in the order in which they are printed.
var permLetters = []struct {
	letter byte
	bit    int32
}{{'c', proto.PermCreate}, {'d', proto.PermDelete}, {'r', proto.PermRead}, {'w', proto.PermWrite}, {'a', proto.PermAdmin}}

func permText(perms int32) string {
	var b strings.Builder
	for _, p := range permLetters {
		if perms&p.bit != 0 {
			b.WriteByte(p.letter)
		}
	}
	return b.String()
}

// parseACL reads scheme:id:perms, comma separated; what does not read is reported and left out.
func (s *shell) parseACL(text string) []proto.ACL {
	var acl []proto.ACL
	for entry := range strings.SplitSeq(text, ",") {
		first, last := strings.IndexByte(entry, ':'), strings.LastIndexByte(entry, ':')
		if first == last {
			fmt.Fprintf(s.stderr, "%s does not have the form scheme:id:perm\n", entry)
			continue
		}
		a := proto.ACL{Scheme: entry[:first], ID: entry[first+1 : last]}
	letters:
		for _, letter := range entry[last+1:] {
			for _, p := range permLetters {
				if rune(p.letter) == letter {
					a.Perms |= p.bit
					continue letters
				}
			}
			fmt.Fprintf(s.stderr, "Unknown perm type: %c\n", letter)
		}
		acl = append(acl, a)
	}
	return acl
}

func (s *shell) getACL(p parsed) error {
	path := p.args[1]
	r, err := s.at(proto.OpGetACL, path, func(full string) proto.Request { return &proto.PathRequest{Path: full} })
	if err != nil {
		return explain(err, path)
	}
	var b strings.Builder
	for _, a := range r.ACLs() {
		fmt.Fprintf(&b, "'%s,'%s\n: %s\n", a.Scheme, a.ID, permText(a.Perms))
	}
	if p.has('s') {
		b.WriteString(statText(r.Stat()))
	}
	s.print(b.String())
	return r.Err()
}

func (s *shell) setACL(p parsed) error {
	path := p.args[1]
	version, err := p.version()
	if err != nil {
		return err
	}
	acl := s.parseACL(p.args[2])
	if len(acl) == 0 {
		return failf("Acl is not valid : %s", s.emptyACLPath(path))
	}
	setOne := func(path string) (*proto.Reader, error) {
		return s.at(proto.OpSetACL, path, func(full string) proto.Request {
			return &proto.SetACLRequest{Path: full, ACL: acl, Version: version}
		})
	}
	if p.has('R') {
		return s.walk(path, false, func(path string) error {
			if _, err := setOne(path); err != nil {
				s.print(explain(err, path).Error())
			}
			return nil
		})
	}
	r, err := setOne(path)
	if err != nil {
		return explain(err, path)
	}
	if p.has('s') {
		s.print(statText(r.Stat()))
	}
	return r.Err()
}

// emptyACLPath is what the original names when no entry was left: its newer client finds out before it knows the path.
func (s *shell) emptyACLPath(path string) string {
	if s.compat39 {
		return "null"
	}
	return path
}

func (s *shell) addAuth(p parsed) error {
	a := &proto.AuthRequest{Scheme: p.args[1]}
	if len(p.args) > 2 {
		a.Auth = []byte(p.args[2])
	}
	if err := s.zk.addAuth(a); err != nil {
		s.event("AuthFailed", "None", "null")
		return explain(err, "null")
	}
	return nil
}

func (s *shell) whoAmI(parsed) error {
	r, err := s.zk.call(proto.OpWhoAmI, &proto.EmptyRequest{})
	if err != nil {
		return explain(err, "null")
	}
	var b strings.Builder
	b.WriteString("Auth scheme: User\n")
	for n := r.Int32(); n > 0 && r.Err() == nil; n-- {
		scheme, user := r.String(), r.String()
		fmt.Fprintf(&b, "%s: %s\n", scheme, user)
	}
	s.print(b.String())
	return r.Err()
}

// statText prints a node's metadata, times as Java prints a Date.
func statText(st proto.Stat) string {
	date := func(ms int64) string { return time.UnixMilli(ms).Format("Mon Jan 02 15:04:05 MST 2006") }
	return fmt.Sprintf("cZxid = 0x%x\nctime = %s\nmZxid = 0x%x\nmtime = %s\npZxid = 0x%x\ncversion = %d\ndataVersion = %d\n"+
		"aclVersion = %d\nephemeralOwner = 0x%x\ndataLength = %d\nnumChildren = %d\n",
		uint64(st.Czxid), date(st.Ctime), uint64(st.Mzxid), date(st.Mtime), uint64(st.Pzxid), st.Cversion, st.Version, st.Aversion,
		uint64(st.EphemeralOwner), st.DataLength, st.NumChildren)
}

func codeOf(err error) (proto.Code, bool) {
	var code *client.Error
	if errors.As(err, &code) {
		return code.Code, true
	}
	return 0, false
}

func isCode(err error, want proto.Code) bool {
	code, ok := codeOf(err)
	return ok && code == want
}
