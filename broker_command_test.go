package main

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
)

func TestAnOverrideMayHoldCommas(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command(cluster.Binary(t), "broker", "--override", "log.dirs="+dir+"/a,"+dir+"/b", "--override", "num.partitions=3").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "zookeeper.connect is not set")
}

func TestOverridesMayFollowTheFile(t *testing.T) {
	for _, c := range []struct {
		path            string
		given, rest     []string
		wantPath, fault string
		want            []string
	}{
		{path: "a", wantPath: "a"},
		{rest: []string{"a", "--override", "k=1,2", "--override=l=3"}, wantPath: "a", want: []string{"k=1,2", "l=3"}},
		{path: "a", given: []string{"k=1"}, rest: []string{"--override", "k=2"}, wantPath: "a", want: []string{"k=1", "k=2"}},
		{rest: []string{"a", "b"}, fault: `"b"`},
		{path: "a", rest: []string{"b"}, fault: `"b"`},
		{rest: []string{"a", "--override"}, fault: `"--override"`},
		{rest: []string{"a", "--overide", "k=1"}, fault: `"--overide"`},
	} {
		path, overrides, err := whatToRun(c.path, c.given, c.rest)
		if c.fault != "" {
			assert.ErrorContains(t, err, c.fault)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.wantPath, path)
		assert.Equal(t, c.want, overrides)
	}
}
