package zkshell

import (
	"fmt"
	"slices"
	"strings"

	"barnabas/zkstate/embedded/proto"
)

// command is one that needs a session. minArgs is how many words must follow its name, options apart.
type command struct {
	usage   string
	options string // see parse
	minArgs int
	run     func(*shell, parsed) error
}

var commands map[string]command

func init() { // the table refers to functions that print it
	commands = map[string]command{
		"addWatch":             {"[-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is PERSISTENT_RECURSIVE", "m:", 1, (*shell).addWatch},
		"addauth":              {"scheme auth", "", 1, (*shell).addAuth},
		"close":                {"", "", 0, (*shell).closeSession},
		"config":               {"[-c] [-w] [-s]", "cws", 0, (*shell).config},
		"create":               {"[-s] [-e] [-c] [-t ttl] path [data] [acl]", "esct:", 1, (*shell).create},
		"delete":               {"[-v version] path", "v:", 1, (*shell).delete},
		"deleteall":            {"path [-b batch size]", "b:", 1, (*shell).deleteAll},
		"get":                  {"[-s] [-w] path", "sw", 1, (*shell).get},
		"getAcl":               {"[-s] path", "s", 1, (*shell).getACL},
		"getAllChildrenNumber": {"path", "", 1, (*shell).getAllChildrenNumber},
		"getEphemerals":        {"path", "", 0, (*shell).getEphemerals},
		"ls":                   {"[-s] [-w] [-R] path", "?swR", 1, (*shell).ls},
		"ls2":                  {"path [watch]", "", 1, (*shell).ls2},
		"removewatches":        {"path [-c|-d|-a] [-l]", "cdal", 1, (*shell).removeWatches},
		"rmr":                  {"path", "", 1, (*shell).rmr},
		"set":                  {"[-s] [-v version] path data", "sv:", 2, (*shell).set},
		"setAcl":               {"[-s] [-v version] [-R] path acl", "sv:R", 2, (*shell).setACL},
		"stat":                 {"[-w] path", "w", 1, (*shell).stat},
		"sync":                 {"path", "", 1, (*shell).sync},
		"version":              {"", "", 0, (*shell).version},
		"whoami":               {"", "", 0, (*shell).whoAmI},
		"delquota":             {"", "", 0, unsupported("delquota")},
		"listquota":            {"", "", 0, unsupported("listquota")},
		"setquota":             {"", "nbNB", 0, unsupported("setquota")},
		"reconfig":             {"", "", 0, unsupported("reconfig")},
	}
}

func unsupported(name string) func(*shell, parsed) error {
	return func(*shell, parsed) error { return failf("%s is not supported by this shell", name) }
}

// usageLines lists every command with its arguments, in order of name.
func usageLines() []string {
	lines := []string{"connect host:port", "history ", "printwatches on|off", "quit ", "redo cmdno"}
	for name, c := range commands {
		if c.usage == "" && c.minArgs == 0 && !slices.Contains([]string{"close", "version", "whoami"}, name) {
			continue
		}
		lines = append(lines, name+" "+c.usage)
	}
	slices.SortFunc(lines, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, " ")
		nameB, _, _ := strings.Cut(b, " ")
		return strings.Compare(nameA, nameB)
	})
	return lines
}

// watchWord keeps the old form "ls path watch": a further word asks for a watch.
func (s *shell) watchWord(p parsed, name, usage string) (watch bool) {
	if len(p.args) > 2 {
		fmt.Fprintf(s.stderr, "'%s path [watch]' has been deprecated. Please use '%s' instead.\n", name, usage)
		return true
	}
	return p.has('w')
}

// at checks the path and sends a request about it; errors speak of the path as the user wrote it.
func (s *shell) at(op proto.Op, path string, req func(full string) proto.Request) (*proto.Reader, error) {
	if err := validatePath(path); err != nil {
		return nil, err
	}
	return s.zk.call(op, req(s.zk.full(path)))
}

func (s *shell) read(op proto.Op, path string, watch bool) (*proto.Reader, error) {
	return s.at(op, path, func(full string) proto.Request { return &proto.ReadRequest{Path: full, Watch: watch} })
}

func (s *shell) ls(p parsed) error {
	path, watch := p.args[1], s.watchWord(p, "ls", "ls [-w] path")
	if p.has('?') {
		s.print("usage: ls [options] path\n -?   help\n -R   recurse\n -s   stat\n -w   watch\n")
	}
	if p.has('R') {
		return s.walk(path, watch, func(path string) error {
			s.print(path + "\n")
			return nil
		})
	}
	r, err := s.read(proto.OpGetChildren2, path, watch)
	if err != nil {
		return explain(err, path)
	}
	text := "[" + strings.Join(sorted(r.Strings()), ", ") + "]\n"
	if p.has('s') {
		text += statText(r.Stat())
	}
	s.print(text)
	return r.Err()
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

func (s *shell) ls2(p parsed) error {
	fmt.Fprintln(s.stderr, "'ls2' has been deprecated. Please use 'ls [-s] path' instead.")
	r, err := s.read(proto.OpGetChildren2, p.args[1], len(p.args) > 2)
	if err != nil {
		return explain(err, p.args[1])
	}
	s.print("[" + strings.Join(sorted(r.Strings()), ", ") + "]\n" + statText(r.Stat()))
	return r.Err()
}

// walk visits a node and everything below it: all children of a node before the children of the first.
func (s *shell) walk(path string, watch bool, visit func(path string) error) error {
	if _, err := s.read(proto.OpGetData, path, watch); err != nil {
		return explain(err, path)
	}
	if err := visit(path); err != nil {
		return err
	}
	return s.walkBelow(path, watch, visit)
}

func (s *shell) walkBelow(path string, watch bool, visit func(path string) error) error {
	r, err := s.read(proto.OpGetChildren, path, watch)
	if isCode(err, proto.NoNode) {
		return nil // removed since it was listed
	}
	if err != nil {
		return explain(err, path)
	}
	children := sorted(r.Strings())
	for i, child := range children {
		children[i] = strings.TrimSuffix(path, "/") + "/" + child
		if err := visit(children[i]); err != nil {
			return err
		}
	}
	for _, child := range children {
		if err := s.walkBelow(child, watch, visit); err != nil {
			return err
		}
	}
	return nil
}

func (s *shell) get(p parsed) error {
	path := p.args[1]
	r, err := s.read(proto.OpGetData, path, s.watchWord(p, "get", "get [-s] [-w] path"))
	if err != nil && !s.compat39 {
		return explainRaw(err, path)
	}
	if err != nil {
		return explain(err, path)
	}
	data := r.Buffer()
	if data == nil {
		data = []byte("null")
	}
	text := string(data) + "\n"
	if p.has('s') {
		text += statText(r.Stat())
	}
	s.print(text)
	return r.Err()
}

func (s *shell) stat(p parsed) error {
	path := p.args[1]
	r, err := s.read(proto.OpExists, path, s.watchWord(p, "stat", "stat [-w] path"))
	if err != nil {
		return explain(err, path)
	}
	s.print(statText(r.Stat()))
	return r.Err()
}

func (s *shell) set(p parsed) error {
	path := p.args[1]
	version, err := p.version()
	if err != nil {
		return err
	}
	r, err := s.at(proto.OpSetData, path, func(full string) proto.Request {
		return &proto.SetDataRequest{Path: full, Data: []byte(p.args[2]), Version: version}
	})
	if err != nil {
		return explain(err, path)
	}
	if p.has('s') {
		s.print(statText(r.Stat()))
	}
	return r.Err()
}

func (s *shell) delete(p parsed) error {
	if len(p.args) > 2 {
		fmt.Fprintln(s.stderr, "'delete path [version]' has been deprecated. Please use 'delete [-v version] path' instead.")
	}
	version, err := p.version()
	if err != nil {
		return err
	}
	return s.remove(p.args[1], version)
}

func (s *shell) remove(path string, version int32) error {
	_, err := s.at(proto.OpDelete, path, func(full string) proto.Request { return &proto.DeleteRequest{Path: full, Version: version} })
	return explain(err, path)
}

// deleteAll removes a node and everything below it, the deepest first.
func (s *shell) deleteAll(p parsed) error {
	root := p.args[1]
	if _, err := s.read(proto.OpGetChildren, root, false); err != nil {
		return explain(err, root)
	}
	var paths []string
	if err := s.walk(root, false, func(path string) error {
		paths = append(paths, path)
		return nil
	}); err != nil {
		return err
	}
	// A parent's path is a prefix of its children's: backwards by name, children come first.
	slices.Sort(paths)
	failed := false
	for _, path := range slices.Backward(paths) {
		if err := s.remove(path, -1); err != nil {
			failed = true
		}
	}
	if failed {
		fmt.Fprintln(s.stderr, "Failed to delete some node(s) in the subtree!")
	}
	return nil
}

func (s *shell) rmr(p parsed) error {
	fmt.Fprintln(s.stderr, "The command 'rmr' has been deprecated. Please use 'deleteall' instead.")
	return s.deleteAll(p)
}

func (s *shell) getEphemerals(p parsed) error {
	prefix := "/"
	if len(p.args) > 1 {
		prefix = p.args[1]
	}
	r, err := s.at(proto.OpGetEphemerals, prefix, func(full string) proto.Request { return &proto.PathRequest{Path: full} })
	if err != nil {
		return explain(err, prefix)
	}
	s.print("[" + strings.Join(r.Strings(), ", ") + "]\n")
	return r.Err()
}

func (s *shell) getAllChildrenNumber(p parsed) error {
	path := p.args[1]
	r, err := s.at(proto.OpGetAllChildrenNum, path, func(full string) proto.Request { return &proto.PathRequest{Path: full} })
	if err != nil {
		return explain(err, path)
	}
	s.print(fmt.Sprintln(r.Int32()))
	return r.Err()
}

func (s *shell) sync(p parsed) error {
	path := p.args[1]
	if _, err := s.at(proto.OpSync, path, func(full string) proto.Request { return &proto.PathRequest{Path: full} }); err != nil {
		if code, ok := codeOf(err); ok {
			s.print(fmt.Sprintf("Sync has failed. rc=%d\n", code))
			return nil
		}
		return err
	}
	s.print("Sync is OK\n")
	return nil
}

func (s *shell) closeSession(parsed) error {
	s.zk.close()
	return nil
}

// config shows the ensemble's own node, which no chroot hides.
func (s *shell) config(p parsed) error {
	const path = "/zookeeper/config"
	r, err := s.zk.call(proto.OpGetData, &proto.ReadRequest{Path: path, Watch: p.has('w')})
	if err != nil {
		return explain(err, path)
	}
	text := string(r.Buffer()) + "\n"
	if p.has('s') {
		text += statText(r.Stat())
	}
	s.print(text)
	return r.Err()
}

func (s *shell) version(parsed) error {
	s.print("ZooKeeper CLI version: 3.8.4-barnabas\n")
	return nil
}

func (s *shell) addWatch(p parsed) error {
	mode := int32(1)
	if name, ok := p.values['m']; ok {
		switch strings.ToUpper(name) {
		case "PERSISTENT":
			mode = 0
		case "PERSISTENT_RECURSIVE":
		default:
			return failf("addWatch %s", commands["addWatch"].usage)
		}
	}
	path := p.args[1]
	_, err := s.at(proto.OpAddWatch, path, func(full string) proto.Request { return &proto.WatchRequest{Path: full, Mode: mode} })
	return explain(err, path)
}

func (s *shell) removeWatches(p parsed) error {
	mode := int32(3)
	switch {
	case p.has('c'):
		mode = 1
	case p.has('d'):
		mode = 2
	}
	path := p.args[1]
	_, err := s.at(proto.OpRemoveWatches, path, func(full string) proto.Request { return &proto.WatchRequest{Path: full, Mode: mode} })
	return explain(err, path)
}
