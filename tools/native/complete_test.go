package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"barnabas/integration/lane"
)

// offered is what a line's last word may become, with names as the cluster would tell them.
func offered(line string, names ...string) (list []string, kind string) {
	w := wishOf(append(Commands(), CompleteCommand(), &cli.Command{Name: "broker", Subcommands: BrokerCommands()}), strings.Split(line, " "))
	var out strings.Builder
	offer(&out, w, names)
	for line := range strings.Lines(out.String()) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		list = append(list, word)
	}
	return list, w.names
}

func TestAWordBecomesWhatItsPlaceWants(t *testing.T) {
	for line, want := range map[string][]string{
		"qu":                              {"quota"},
		"topic ":                          {"list", "describe", "create", "alter", "rf", "delete"},
		"topic de":                        {"describe", "delete"},
		"broker d":                        {"drain"},
		"topic describe --wa":             {"--watch"},
		"topic describe t --out":          {"--output"},
		"topic list -o ":                  {"table", "json", "yaml"},
		"topic list --output=j":           {"--output=json"},
		"completion ":                     {"bash", "zsh", "fish"},
		"config get ":                     {"topic", "broker", "user", "client"},
		"acl add User:alice t":            {"topic:", "transactional-id:"},
		"acl check User:alice describe-c": {"describe-configs"},
		"quota set prod":                  {"producer_byte_rate="},
		"quota unset prod":                {"producer_byte_rate"},
		"plan spread ":                    nil,
		"kafka-topics --describe ":        nil,
		"nonsense ":                       nil,
		"__com":                           nil,
		"disk ":                           nil,
	} {
		got, _ := offered(line)
		assert.Equal(t, want, got, line)
	}
	got, _ := offered("")
	assert.Contains(t, got, "acl")
	assert.NotContains(t, got, "__complete")
}

func TestNamesAreThoseOfTheKindThatIsWanted(t *testing.T) {
	for line, want := range map[string]struct {
		kind string
		list []string
	}{
		"topic describe ":                         {"topic", []string{"a1", "b2"}},
		"topic describe x a":                      {"topic", []string{"a1"}},
		"topic rf t ":                             {"", nil},
		"group describe a":                        {"group", []string{"a1"}},
		"broker drain ":                           {"broker", []string{"a1", "b2"}},
		"plan replace 1 ":                         {"broker", []string{"a1", "b2"}},
		"elect ":                                  {"topic", []string{"a1", "b2"}},
		"user remove b":                           {"user", []string{"b2"}},
		"config get topic ":                       {"topic", []string{"a1", "b2"}},
		"config get broker a":                     {"broker", []string{"a1"}},
		"acl list --principal User:a":             {"user", []string{"User:a1"}},
		"acl list --principal=Us":                 {"user", []string{"--principal=User:a1", "--principal=User:b2"}},
		"acl check U":                             {"user", []string{"User:a1", "User:b2"}},
		"acl list topic:b":                        {"topic", []string{"topic:b2"}},
		"acl add User:x topic:t group:":           {"group", []string{"group:a1", "group:b2"}},
		"disk --topic ":                           {"topic", []string{"a1", "b2"}},
		"topic describe --bootstrap-server h:1 a": {"topic", []string{"a1"}},
		"topic describe --watch ":                 {"topic", []string{"a1", "b2"}},
	} {
		got, kind := offered(line, "a1", "b2", "with space", "esc\x1b[2J")
		assert.Equal(t, want.kind, kind, line)
		if want.kind == "" {
			got = nil
		}
		assert.Equal(t, want.list, got, line)
	}
	w := wishOf(Commands(), strings.Split("topic describe --bootstrap-server h:1 --command-config=f ", " "))
	assert.Equal(t, map[string]string{"bootstrap-server": "h:1", "command-config": "f"}, w.options)
}

func TestACompletionThatGetsNoAnswerIsSilent(t *testing.T) {
	code, stdout, stderr := run("__complete", "topic", "describe", "--bootstrap-server", "127.0.0.1:1", "")
	assert.Equal(t, []any{Exit(0), "", ""}, []any{code, stdout, stderr})
}

// A program of the same name stands for the real one.
func TestBashPutsInWhatIsOffered(t *testing.T) {
	bash, err := exec.LookPath("bash")
	lane.Need(t, err == nil, "bash")
	code, script, _ := run("completion", "bash")
	require.Zero(t, code)
	ask := func(line string) string {
		out, err := exec.Command(bash, "-c", script+`
compopt() { echo -n "($*)"; }
fake() { for word in "$@"; do echo "[$word]" >&3; done; printf 'acl:x\tusage\nacl:y\n'; }
COMP_LINE=$1 COMP_POINT=${#1}
exec 3>&1
_barnabas fake
echo "${COMPREPLY[*]}"`, "-", line).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	assert.Equal(t, "[__complete]\n[acl]\n[list]\n[acl:]\nx y\n", ask("fake acl list acl:"))
	assert.Equal(t, "[__complete]\n[acl]\n[]\nacl:x acl:y\n", ask("fake acl "))
}

func TestTheOtherShellsTakeTheirScripts(t *testing.T) {
	for _, shell := range shells {
		code, script, _ := run("completion", shell)
		assert.Zero(t, code)
		assert.Contains(t, script, "__complete")
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "script")
		require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
		out, err := exec.Command(path, "-n", file).CombinedOutput()
		assert.NoError(t, err, "%s: %s", shell, out)
	}
}
