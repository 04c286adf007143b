package zkshell

import (
	"errors"
	"fmt"
	"unicode/utf16"

	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
)

// known is what the original says of a code: the name in KeeperErrorCode, the exception's class, and the friendlier sentence that
// most commands print instead.
var known = map[proto.Code]struct{ name, class, sentence string }{
	proto.RuntimeInconsistency:    {"RuntimeInconsistency", "RuntimeInconsistency", ""},
	codeConnectionLoss:            {"ConnectionLoss", "ConnectionLoss", ""},
	proto.MarshallingError:        {"MarshallingError", "MarshallingError", ""},
	proto.Unimplemented:           {"Unimplemented", "Unimplemented", ""},
	proto.BadArguments:            {"BadArguments", "BadArguments", "Arguments are not valid : "},
	proto.NoNode:                  {"NoNode", "NoNode", "Node does not exist: "},
	proto.NoAuth:                  {"NoAuth", "NoAuth", "Insufficient permission : "},
	proto.BadVersion:              {"BadVersion", "BadVersion", "version No is not valid : "},
	proto.NoChildrenForEphemerals: {"NoChildrenForEphemerals", "NoChildrenForEphemerals", "Ephemerals cannot have children: "},
	proto.NodeExists:              {"NodeExists", "NodeExists", "Node already exists: "},
	proto.NotEmpty:                {"Directory not empty", "NotEmpty", "Node not empty: "},
	proto.SessionExpired:          {"Session expired", "SessionExpired", ""},
	proto.InvalidACL:              {"InvalidACL", "InvalidACL", "Acl is not valid : "},
	proto.AuthFailed:              {"AuthFailed", "AuthFailed", ""},
	proto.NoWatcher:               {"No such watcher", "NoWatcher", ""},
	proto.ReconfigDisabled:        {"Reconfig is disabled", "ReconfigDisabled", ""},
}

// explain turns an error code about path into the line that most commands print.
func explain(err error, path string) error {
	var code *client.Error
	if !errors.As(err, &code) {
		return err
	}
	if sentence := known[code.Code].sentence; sentence != "" {
		return failf("%s%s", sentence, path)
	}
	return failf("%s", keeperText(code.Code, path))
}

func keeperText(code proto.Code, path string) string {
	name := known[code].name
	if name == "" {
		name = fmt.Sprintf("Unknown error %d", code)
	}
	return "KeeperErrorCode = " + name + " for " + path
}

// explainRaw names the exception, as `get` of 2.8 does.
func explainRaw(err error, path string) error {
	var code *client.Error
	if !errors.As(err, &code) {
		return err
	}
	return failf("org.apache.zookeeper.KeeperException$%sException: %s", known[code.Code].class, keeperText(code.Code, path))
}

// validatePath refuses what no node can be called, with the original's words; positions count UTF-16 units.
func validatePath(path string) error {
	switch {
	case path == "":
		return failf("Path length must be > 0")
	case path[0] != '/':
		return failf("Path must start with / character")
	case path == "/":
		return nil
	case path[len(path)-1] == '/':
		return failf("Path must not end with / character")
	}
	units := utf16.Encode([]rune(path))
	for i := 1; i < len(units); i++ {
		if reason := badUnit(units, i); reason != "" {
			return failf("Invalid path string \"%s\" caused by %s @%d", path, reason, i)
		}
	}
	return nil
}

func badUnit(u []uint16, i int) string {
	c, last := u[i], u[i-1]
	ends := i+1 == len(u) || u[i+1] == '/'
	switch {
	case c == 0:
		return "null character not allowed"
	case c == '/' && last == '/':
		return "empty node name specified"
	case c == '.' && ends && (last == '/' || last == '.' && u[i-2] == '/'):
		return "relative paths not allowed"
	case c <= 0x1f || c >= 0x7f && c <= 0x9f || c >= 0xd800 && c <= 0xf8ff || c >= 0xfff0:
		return "invalid character"
	}
	return ""
}
