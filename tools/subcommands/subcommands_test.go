package subcommands

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var tool = Command{Name: "tool", Doc: "A tool.", Commands: []Command{
	{Name: "run", Doc: "Run it.", OneOf: [][]string{{"size", "file"}}, Arguments: []Argument{
		{Name: "topic", Short: "t", Value: "TOPIC", Required: true, Doc: "the topic"},
		{Name: "throughput", Value: "N", Default: "-1", Doc: "how many a second"},
		{Name: "props", Value: "KEY=VALUE", Many: true, Doc: "settings"},
		{Name: "print", Doc: "print more"},
		{Name: "size", Value: "SIZE", Doc: "a size"}, {Name: "file", Value: "FILE", Doc: "a file"},
	}},
	{Name: "stop", Doc: "Stop it."},
}}

func TestArgumentsAreRead(t *testing.T) {
	call, err := tool.Parse([]string{"run", "-t", "x", "--props", "a=b", "c=d", "--thr", "-1", "--print", "--size=5"})
	require.NoError(t, err)
	assert.Equal(t, "run", call.Command)
	assert.Equal(t, "x", call.Value("topic"))
	assert.Equal(t, []string{"a=b", "c=d"}, call.Values("props"))
	assert.Equal(t, "-1", call.Value("throughput"))
	assert.True(t, call.Has("print"))
	assert.Equal(t, "5", call.Value("size"))
	assert.False(t, call.Has("file"))
}

func TestWrongCallsComeWithTheUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "too few arguments"},
		{[]string{"walk"}, "invalid choice: 'walk' (choose from 'run', 'stop')"},
		{[]string{"run", "--size", "1"}, "argument --topic/-t is required"},
		{[]string{"run", "--topic", "x"}, "one of the arguments --size --file is required"},
		{[]string{"run", "--topic", "x", "--size", "1", "--file", "f"}, "argument --file: not allowed with argument --size"},
		{[]string{"run", "--t", "x"}, "ambiguous option: --t could match --topic, --throughput"},
		{[]string{"run", "--nosuch"}, "unrecognized arguments: '--nosuch'"},
		{[]string{"run", "stray"}, "unrecognized arguments: 'stray'"},
		{[]string{"run", "--topic"}, "argument --topic/-t: expected one argument"},
		{[]string{"run", "--props", "--print"}, "argument --props: expected at least one argument"},
		{[]string{"run", "--print=1"}, "argument --print: ignored implicit argument '1'"},
	} {
		_, err := tool.Parse(c.args)
		require.EqualError(t, err, c.want)
		var out, errs bytes.Buffer
		assert.Equal(t, 1, Report(err, &out, &errs))
		assert.Contains(t, errs.String(), "usage: tool")
		assert.Contains(t, errs.String(), "tool: error: "+c.want+"\n")
		assert.Empty(t, out.String())
	}
}

func TestWhatWasMeantIsSaid(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"rnu"}, "error: invalid choice: 'rnu' (choose from 'run', 'stop')\n\nDid you mean:\n\trun\n"},
		{[]string{"run", "--tpoic", "x"}, "error: unrecognized arguments: '--tpoic'\n\nDid you mean:\n\t--topic\n"},
	} {
		_, err := tool.Parse(c.args)
		var out, errs bytes.Buffer
		Report(err, &out, &errs)
		assert.Contains(t, errs.String(), c.want)
	}
}

func TestArgumentsOfTheToolComeBeforeTheCommand(t *testing.T) {
	tool := Command{Name: "tool", Word: "COMMAND", Arguments: []Argument{{Name: "server", Value: "S", Required: true}, {Name: "version", Short: "v", Alone: true}},
		Commands: []Command{{Name: "run", Arguments: []Argument{{Name: "times", Value: "N", Number: Short}}}}}
	call, err := tool.Parse([]string{"--server", "s", "run", "--times", "-3"})
	require.NoError(t, err)
	assert.Equal(t, []string{"run", "s"}, []string{call.Command, call.Value("server")})
	assert.EqualValues(t, -3, call.Int("times"))
	call, err = tool.Parse([]string{"-v", "nonsense"})
	require.NoError(t, err)
	assert.True(t, call.Has("version"))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run"}, "argument --server is required"},
		{[]string{"--server", "s"}, "too few arguments"},
		{[]string{"run", "--server", "s"}, "unrecognized arguments: '--server'"},
		{[]string{"--server", "s", "run", "--times", "40000"}, `argument --times: could not convert '40000' to Short (For input string: "40000")`},
	} {
		_, err := tool.Parse(c.args)
		assert.EqualError(t, err, c.want)
	}
	_, err = tool.Parse([]string{"run", "-h"})
	var out, errs bytes.Buffer
	Report(err, &out, &errs)
	assert.Contains(t, out.String(), "usage: tool --server S run [-h] [--times N]\n")
}

func TestHelpGoesToStandardOutput(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}} {
		_, err := tool.Parse(args)
		var out, errs bytes.Buffer
		assert.Equal(t, 1, Report(err, &out, &errs))
		assert.Equal(t, `usage: tool [-h] {run,stop} ...

A tool.

positional arguments:
  {run,stop}
    run                  Run it.
    stop                 Stop it.

optional arguments:
  -h, --help             show this help message and exit
`, out.String())
		assert.Empty(t, errs.String())
	}
	_, err := tool.Parse([]string{"run", "--help"})
	var out, errs bytes.Buffer
	Report(err, &out, &errs)
	assert.Contains(t, out.String(), "  --topic TOPIC, -t TOPIC\n                         the topic\n")
	assert.Contains(t, out.String(), "  --throughput N         how many a second (default: -1)\n")
}

func TestArgumentsOfWhichOneIsNeededStandTogether(t *testing.T) {
	tool := Command{Name: "kafka-quorum", OneOf: [][]string{{"bootstrap-server", "bootstrap-controller"}},
		Arguments: []Argument{{Name: "bootstrap-server", Value: "BOOTSTRAP_SERVER"}, {Name: "bootstrap-controller", Value: "BOOTSTRAP_CONTROLLER"}, {Name: "config", Value: "CONFIG"}},
		Commands:  []Command{{Name: "describe"}, {Name: "add"}}}
	help := func(args ...string) string {
		_, err := tool.Parse(args)
		var out, errs bytes.Buffer
		Report(err, &out, &errs)
		return out.String()
	}
	assert.Contains(t, help("-h"), `usage: kafka-quorum [-h] [--config CONFIG]
                    (--bootstrap-server BOOTSTRAP_SERVER |
                    --bootstrap-controller BOOTSTRAP_CONTROLLER)
                    {describe,add} ...
`)
	assert.Contains(t, help("--bootstrap-server", "s", "describe", "-h"), `usage: kafka-quorum (--bootstrap-server BOOTSTRAP_SERVER |
                    --bootstrap-controller BOOTSTRAP_CONTROLLER) describe
                    [-h]
`)
	assert.True(t, tool.IsCommand("add"))
	assert.False(t, tool.IsCommand("--add"))
}
