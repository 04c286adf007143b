package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The house's arrows: what each package may import of this module. A package that is not here fails the test, so that a new one gets its place on purpose.
var mayImport = map[string][]string{
	"config":           {"config/secret"},
	"config/secret":    {},
	"zkstate":          {"zkstate/embedded/client", "zkstate/embedded/proto", "zkstate/sasl"}, // what the common library leaves out
	"zkstate/sasl":     {"kerberos"},
	"ssl":              {"javaregexp"},
	"kerberos":         {"javaregexp"},
	"javaregexp":       {},
	"oauth":            {"ssl"},
	"zkstate/embedded": {"zkstate/embedded/...", "ssl"},
	"zkstate/zktest":   {"zkstate/embedded", "zkstate/embedded/...", "integration/lane"},
	"admin":            {"zkstate", "config", "config/secret", "broker/acl"},
	"admin/plan":       {},
	"admin/cluster":    {"admin", "admin/plan", "broker/acl"},
	"admin/health":     {"admin/cluster", "admin/plan"},

	"broker/acl":         {},
	"broker/token":       {"broker/acl"},
	"broker/auth":        {"broker/wire", "kerberos", "oauth"},
	"broker/vfs":         {},
	"broker/record":      {},
	"broker/purgatory":   {},
	"broker/metadata":    {},
	"broker/metrics":     {},
	"broker/quota":       {},
	"broker/wire":        {"broker/vfs"}, // for FileRange, the one type that crosses from log to network
	"broker/peer":        {"broker/wire"},
	"broker/netserver":   {"broker/wire", "broker/vfs", "broker/quota"},
	"broker/commitlog":   {"broker/record", "broker/vfs"},
	"broker/partition":   {"broker/record", "broker/commitlog", "broker/purgatory", "broker/vfs"},
	"broker/coordinator": {"broker/record", "broker/commitlog"},
	"broker/group":       {"broker/coordinator", "broker/record"},
	"broker/txn":         {"broker/coordinator", "broker/record"},
	"broker/fetcher":     {"broker/wire", "broker/record", "broker/peer", "broker/partition", "broker/commitlog", "broker/vfs"},
	"broker/api":         {"broker/wire", "broker/acl", "broker/token", "broker/quota", "broker/group", "broker/txn", "broker/record", "broker/metadata", "broker/partition", "broker/commitlog", "broker/vfs", "admin"},
	"broker":             {"broker/...", "zkstate", "config", "config/secret", "admin", "ssl", "kerberos", "oauth"},

	"controller": {"zkstate", "config", "admin", "broker/wire", "broker/peer"},

	"tools":             {"broker/wire", "broker/auth", "ssl", "broker/acl", "broker/record", "zkstate", "config", "config/secret", "admin", "admin/plan", "admin/cluster", "tools/...", "kerberos", "oauth"},
	"tools/native":      {"tools", "tools/spelling", "tools/znode", "tools/logdir", "tools/dumplog", "admin", "admin/cluster", "admin/health", "admin/plan", "broker/acl", "broker/commitlog", "broker/record", "zkstate"},
	"tools/console":     {"tools/native", "admin", "broker/acl", "admin/cluster", "admin/health", "admin/plan"}, // serves the native tools' documents
	"tools/znode":       {"zkstate"},
	"tools/logdir":      {"broker/vfs", "broker/commitlog"},
	"tools/spelling":    {},
	"tools/options":     {"tools/spelling"},
	"tools/subcommands": {"tools/spelling"},
	"tools/dumplog":     {"broker/vfs", "broker/record", "broker/commitlog", "tools/options"},
	"tools/zkaccess":    {"config", "ssl", "kerberos", "zkstate/sasl"},
	"tools/zkshell":     {"tools/options", "tools/zkaccess", "zkstate/embedded/client", "zkstate/embedded/proto"}, // a shell needs what the common library leaves out

	"integration/...": {"..."},
	".":               {"..."},
}

// Packages outside of this module that have one importer, and why.
var oneDoor = map[string]struct {
	doors  []string
	reason string
}{
	"github.com/go-zookeeper/zk":                     {[]string{"zkstate", "tools/zkshell"}, "zkstate is the only door to ZooKeeper; the shell shows znodes as they are"},
	"github.com/prometheus/client_golang/prometheus": {[]string{"broker/metrics"}, "the other rooms count, and know of no registry"},
	"github.com/jcmturner/gokrb5/v8/messages":        {[]string{"kerberos"}, "what strangers may have made reaches the library only through guarded"},
	"github.com/jcmturner/gokrb5/v8/client":          {[]string{"kerberos"}, "tickets are kept in one place"},
	"go.etcd.io/raft/v3":                             {[]string{"zkstate/embedded/quorum"}, "only an ensemble replicates by Raft"},
	"go.etcd.io/bbolt":                               {[]string{"zkstate/embedded"}, "only the embedded ZooKeeper keeps a database"},
	"net/http":                                       {[]string{"broker/metrics", "tools/console", "oauth"}, "the broker speaks Kafka's protocol; what it counts, the pages for people, and who issues bearer tokens are asked over HTTP"},
}

type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	require.NoError(t, err)
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

const module = "barnabas"

func room(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func matches(pattern, room string) bool {
	if pattern == "..." {
		return true
	}
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(room, prefix+"/")
	}
	return pattern == room
}

// allowed returns the arrows of a room; the most particular pattern counts.
func allowed(name string) ([]string, bool) {
	best, found := "", false
	for pattern := range mayImport {
		if matches(pattern, name) && len(pattern) >= len(best) {
			best, found = pattern, true
		}
	}
	return mayImport[best], found
}

func TestArrowsPointOneWay(t *testing.T) {
	seen := 0
	for _, p := range packages(t) {
		name, ok := room(p.ImportPath)
		require.True(t, ok, p.ImportPath)
		seen++
		arrows, known := allowed(name)
		if !known {
			if strings.HasPrefix(name, "zkstate/embedded/") {
				arrows = []string{"zkstate/embedded/...", "zkstate/sasl"}
			} else {
				t.Errorf("package %s has no place in the table of arrows", name)
				continue
			}
		}
		for _, imported := range p.Imports {
			target, ours := room(imported)
			if ours && !slices.ContainsFunc(arrows, func(a string) bool { return matches(a, target) }) {
				t.Errorf("%s imports %s, which its place in the house does not allow", name, target)
			}
		}
	}
	assert.Greater(t, seen, 20)
}

// A newcomer looks for a room on the map of ARCHITECTURE.md by its last name.
func TestTheMapHasEveryRoom(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "## The rooms\n")
	require.True(t, found)
	rooms, _, found := strings.Cut(rest, "\n## ")
	require.True(t, found)
	for _, p := range packages(t) {
		name, _ := room(p.ImportPath)
		if name != "." {
			assert.Contains(t, rooms, path.Base(name)+"/", "%s is not on the map", name)
		}
	}
}

func TestSomeLibrariesHaveOneDoor(t *testing.T) {
	for _, p := range packages(t) {
		name, _ := room(p.ImportPath)
		if strings.HasPrefix(name, "integration/") || name == "zkstate/zktest" {
			continue
		}
		for library, door := range oneDoor {
			if !slices.Contains(p.Imports, library) {
				continue
			}
			isDoor := slices.ContainsFunc(door.doors, func(d string) bool { return name == d || strings.HasPrefix(name, d+"/") && d == "zkstate/embedded" })
			assert.True(t, isDoor, "%s imports %s: %s", name, library, door.reason)
		}
	}
}
