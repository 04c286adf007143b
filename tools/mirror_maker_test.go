package tools

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func mirrorTool(args []string, out, errs *bytes.Buffer) int { return MirrorMaker(args, nil, out, errs) }

func TestMirrorsThatMakeNoSense(t *testing.T) {
	dir := t.TempDir()
	source, target, nobody := filepath.Join(dir, "source"), filepath.Join(dir, "target"), filepath.Join(dir, "nobody")
	require.NoError(t, os.WriteFile(source, []byte("bootstrap.servers=127.0.0.1:1\ngroup.id=g\npartition.assignment.strategy=org.apache.kafka.clients.consumer.RoundRobinAssignor\n"), 0o600))
	require.NoError(t, os.WriteFile(nobody, []byte("bootstrap.servers=127.0.0.1:1\n"), 0o600))
	require.NoError(t, os.WriteFile(target, []byte("bootstrap.servers=127.0.0.1:1\n"), 0o600))
	files := "--consumer.config " + source + " --producer.config " + target
	for _, c := range []struct{ args, want string }{
		{"", "This tool helps to copy data from one Kafka cluster to another as it comes in.\n"},
		{"--bogus", "Exception when starting mirror maker. (kafka.tools.MirrorMaker$)\njoptsimple.OptionException: bogus is not a recognized option\n"},
		{"--producer.config p", `Missing required argument "[consumer.config]"`},
		{"--consumer.config c", `Missing required argument "[producer.config]"`},
		{files, "ERROR whitelist must be specified (kafka.tools.MirrorMaker$)\n"},
		{files + " --whitelist (", "( is an invalid regex.\n"},
		{files + " --whitelist a --num.streams 0", "--num.streams must be between 1 and 1000\n"},
		{files + " --whitelist a --abort.on.send.failure maybe", `For input string: "maybe"`},
		{files + " --whitelist a --message.handler com.example.Handler", "--message.handler names a Java class that would be handed each record, and there is no Java here to load it.\n"},
		{files + " --whitelist a --consumer.rebalance.listener com.example.Listener", "--consumer.rebalance.listener names a Java class"},
		{"--consumer.config /nosuch --producer.config " + target + " --whitelist a", "/nosuch"},
		{"--consumer.config " + nobody + " --producer.config " + target + " --whitelist a", "InvalidGroupIdException"},
	} {
		got := run(mirrorTool, c.args)
		assert.Equal(t, 1, got.code, c.args)
		assert.Contains(t, got.stderr, c.want, c.args)
		assert.Empty(t, got.stdout, c.args)
	}
	t.Setenv("BARNABAS_COMPAT", "3.9.1")
	got := run(mirrorTool, files)
	assert.Contains(t, got.stderr, "ERROR include list must be specified (kafka.tools.MirrorMaker$)\n")
	assert.Contains(t, got.stderr, "WARN This tool is deprecated")
}

func TestAStopOfAMirrorIsOneWhateverTheTargetDoes(t *testing.T) {
	var errs bytes.Buffer
	m := &mirror{f: face{stderr: &errs}}
	fault := errors.New("the group is gone")
	assert.NoError(t, m.outcome([]error{nil, nil}))
	assert.Equal(t, fault, m.outcome([]error{errGivenUp, nil, fault}), "what was given up is a consequence")
	assert.Empty(t, errs.String())
	assert.NoError(t, m.outcome([]error{nil, errGivenUp}))
	assert.Contains(t, errs.String(), "WARN "+errGivenUp.Error())
}
