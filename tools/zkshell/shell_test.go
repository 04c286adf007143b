package zkshell

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what a run printed and returned.
type answer struct {
	stdout, stderr string
	code           int
}

func run(t *testing.T, stdin string, args ...string) answer {
	t.Helper()
	var out, errs bytes.Buffer
	code := Run(args, strings.NewReader(stdin), &out, &errs)
	return answer{out.String(), errs.String(), code}
}

const connected = "\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null\n"

// The forms of the transcripts taken from the originals.
func TestOneCommandFromTheCommandLine(t *testing.T) {
	srv := zktest.Embedded(t)
	head := "Connecting to " + srv.Addr() + "/tw\n" + connected
	zk := func(args ...string) answer { return run(t, "", append([]string{srv.Addr() + "/tw"}, args...)...) }
	require.Equal(t, answer{"Connecting to " + srv.Addr() + "\n" + connected, "Created /tw\n", 0}, run(t, "", srv.Addr(), "create", "/tw"))
	for _, path := range []string{"/brokers", "/brokers/ids", "/brokers/ids/2", "/brokers/ids/1"} {
		require.Equal(t, answer{head, "Created " + path + "\n", 0}, zk("create", path, `{"version":3}`))
	}
	require.Equal(t, answer{head + "[1, 2]\n", "", 0}, zk("ls", "/brokers/ids"))
	require.Equal(t, answer{head + `{"version":3}` + "\n", "", 0}, zk("get", "/brokers/ids/1"))
	require.Equal(t, answer{head, "org.apache.zookeeper.KeeperException$NoNodeException: KeeperErrorCode = NoNode for /nope\n", 1}, zk("get", "/nope"))
	t.Setenv("BARNABAS_COMPAT", "3.9.1")
	require.Equal(t, answer{head, "Node does not exist: /nope\n", 1}, zk("get", "/nope"))
}

func TestHelpIsNoCommandAndNoServerIsNoCrash(t *testing.T) {
	require.Equal(t, answer{"Connecting to localhost:2181\nWelcome to ZooKeeper!\nJLine support is disabled\n", "", 0}, run(t, "", "--help"))
	none := run(t, "")
	require.Equal(t, 1, none.code)
	require.Contains(t, none.stderr, "USAGE: ")
	require.Equal(t, answer{"Connecting to 127.0.0.1:1\n", "KeeperErrorCode = ConnectionLoss for /\n", 1}, run(t, "", "127.0.0.1:1", "ls", "/"))
	require.Contains(t, run(t, "", "127.0.0.1:1", "-zk-tls-config-file", "/is/not/there", "ls", "/").stderr, "zk-tls-config-file: ")
	require.Contains(t, run(t, "", "127.0.0.1:1", "-client-configuration", "x", "ls", "/").stderr, "-zk-tls-config-file")
}

// script is one session of the shell. Each line's result is told by itself, or by what later lines show.
var script = []string{
	"ls", "ls /zookeeper", "ls -R /zookeeper", "ls noslash", "ls /a//b", "ls /a/", "ls -q /", "bogus",
	"create /t a", "create /t a", "create /t/u 'two words'", `create /t/v "x y z"`, "create /nope/x y", "create -e /t/e d", "create /t/e/x d",
	"create -s /t/q- d", "create -s /t/q- d", "create -c /t/c d", "create -e -c /t/x d", "create -t 1000 /t/ttl d", "create -t x /t/ttl d",
	"create /t/acl d world:anyone:rz", "create /t/bad d nonsense", "create",
	"get", "get /t", "get /t/u", "get -s /nope", "get /zookeeper/quota/", "get /t 1",
	"stat /nope", "stat -w /t/u", "set /t/u b -v 7", "set /t/u", "set /t/u b -v 0", "set -v x /t/u b", "set -v", "get /t/u",
	"getAcl /t/acl", "setAcl /t/u world:anyone:cdrwa", "setAcl /t/u world:x:r", "setAcl /nope world:anyone:r", "setAcl /t/u world:anyone:r -v 9",
	"addauth digest u:p", "create /t/mine d auth::cdrwa", "getAcl /t/mine", "get /t/mine",
	"ls /t", "delete /t", "delete /nope", "delete /t/u -v 7", "delete -v 1 /t/u", "delete /zookeeper", "ls -w /t", "create /t/w d",
	"sync /", "sync noslash", "getAllChildrenNumber /t", "getAllChildrenNumber", "getEphemerals", "getEphemerals /t",
	"printwatches", "printwatches off", "printwatches", "history", "redo 5", "redo 999", "config",
	"addWatch -m nonsense /t", "removewatches /nope", "deleteall /nope", "deleteall /t", "ls /", "close", "ls /",
}

var (
	dates   = regexp.MustCompile(`(?m)^(ctime|mtime) = .*$`)
	lists   = regexp.MustCompile(`(?m)^\[.*\]$`)
	slf4j   = regexp.MustCompile(`(?m)^SLF4J: .*\n`)
	usage   = regexp.MustCompile(`(?m)^(ZooKeeper -server .*|\t.*)\n`)
	numbers = regexp.MustCompile(`For input string: "x".*(\n\tat .*)*`)
	event   = regexp.MustCompile(`\nWATCHER::\n\nWatchedEvent state:(\S+) type:(\S+) path:(\S+)\n`)
)

// plain takes out what cannot be equal: times, log lines of a missing logger, the list of commands, and where events fall.
func plain(text, server string) (rest string, events []string) {
	text = strings.ReplaceAll(text, server, "SERVER")
	text = slf4j.ReplaceAllString(text, "")
	text = usage.ReplaceAllString(text, "")
	text = dates.ReplaceAllString(text, "$1 = DATE")
	text = numbers.ReplaceAllString(text, "NUMBER")
	text = lists.ReplaceAllStringFunc(text, func(list string) string { // 3.5 lists children in no order
		names := strings.Split(strings.Trim(list, "[]"), ", ")
		slices.Sort(names)
		return fmt.Sprint(names)
	})
	for _, m := range event.FindAllStringSubmatch(text, -1) {
		events = append(events, strings.Join(m[1:], " "))
	}
	slices.Sort(events)
	return event.ReplaceAllString(text, ""), events
}

// The same lines go to this shell and to the original's, each with a server of its own; both streams, the exit code and the events
// must be equal.
func TestTheShellSaysWhatTheOriginalSays(t *testing.T) {
	for _, version := range []string{"3.9.1", "2.8.2"} {
		t.Run(version, func(t *testing.T) { compare(t, version) })
	}
}

func compare(t *testing.T, version string) {
	t.Setenv("TZ", "UTC")
	t.Setenv("BARNABAS_COMPAT", version)
	lines := slices.DeleteFunc(slices.Clone(script), func(l string) bool {
		name, _, _ := strings.Cut(l, " ")
		return l == "set -v x /t/u b" || // there it ends the shell with a stack trace
			version == "2.8.2" && slices.Contains([]string{"getAllChildrenNumber", "getEphemerals", "addWatch"}, name) // not there yet
	})
	if version == "2.8.2" {
		lines = append([]string{"create /old x", "ls2 /old", "ls2 /nope", "rmr /nope", "rmr /old"}, lines...)
	}
	stdin := strings.Join(lines, "\n") + "\n"
	ours, theirs := zktest.Embedded(t), zktest.Embedded(t)
	quietLog := filepath.Join(t.TempDir(), "log4j.properties")
	require.NoError(t, os.WriteFile(quietLog, []byte("log4j.rootLogger=OFF\n"), 0o600))
	cmd := exec.Command(lane.Java(t), "-XX:TieredStopAtLevel=1", "-Dlog4j.configuration=file:"+quietLog, "-cp", filepath.Join(lane.KafkaJars(t, version), "*"),
		"org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka", "-server", theirs.Addr())
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the exit code is compared below

	got := run(t, stdin, ours.Addr())
	gotOut, gotEvents := plain(got.stdout, ours.Addr())
	wantOut, wantEvents := plain(out.String(), theirs.Addr())
	require.Equal(t, wantOut, gotOut)
	gotErr, _ := plain(got.stderr, ours.Addr())
	wantErr, _ := plain(errs.String(), theirs.Addr())
	require.Equal(t, wantErr, gotErr)
	require.Equal(t, wantEvents, gotEvents)
	require.Equal(t, cmd.ProcessState.ExitCode(), got.code)
}

func TestTheExitCodeIsThatOfTheLastCommand(t *testing.T) {
	srv := zktest.Embedded(t)
	for script, code := range map[string]int{"ls /\nget /nope": 1, "get /nope\nls /": 0, "bogus": 127, "ls /\nquit\nget /nope": 0, "": 0, "\n  \n": 0} {
		require.Equal(t, code, run(t, script, srv.Addr()).code, "%q", script)
	}
}

func TestTheShellComesBackAfterARestartOfTheServer(t *testing.T) {
	srv := zktest.Embedded(t)
	s := &shell{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, timeout: defaultTimeout, printWatches: true}
	require.NoError(t, s.connect(srv.Addr()))
	defer s.zk.drop()
	s.execute([]string{"create", "-e", "/e", "x"})
	require.Zero(t, s.exitCode)
	srv.Restart()
	<-s.zk.mu.conn.Done()
	s.execute([]string{"getEphemerals"})
	require.Zero(t, s.exitCode, fmt.Sprint(s.stderr))
	require.Contains(t, fmt.Sprint(s.stdout), "[/e]", "the same session")
}

func TestOptionsMayStandAnywhere(t *testing.T) {
	for line, want := range map[string]string{
		"set -s /p d -v 3": "[set /p d] s= v=3", "set -sv3 /p d": "[set /p d] s= v=3", "set -v -1 /p d": "[set /p d] v=-1", "set -- -s /p": "[set -s /p] ",
		"set - x": "[set - x] ", "set -x": "org.apache.commons.cli.UnrecognizedOptionException: Unrecognized option: -x",
		"set -sx": "org.apache.commons.cli.UnrecognizedOptionException: Unrecognized option: -sx", "set -v": "org.apache.commons.cli.MissingArgumentException: Missing argument for option: v",
	} {
		p, err := parse(strings.Fields(line), "sv:")
		if err != nil {
			require.EqualError(t, err, want)
			continue
		}
		var opts []string
		for _, letter := range "sv" {
			if v, ok := p.values[byte(letter)]; ok {
				opts = append(opts, fmt.Sprintf("%c=%s", letter, v))
			}
		}
		require.Equal(t, want, fmt.Sprintf("%v %s", p.args, strings.Join(opts, " ")))
	}
}
