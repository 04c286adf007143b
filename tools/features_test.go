package tools

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func runFeatures(args ...string) ran {
	return runCommand(func(args []string, out, errs *bytes.Buffer) int { return Features(args, nil, out, errs) }, args...)
}

func TestFeatureFlagsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "This tool describes and updates finalized features."},
		{"--bootstrap-server b", "Command must include exactly one action: --describe, --upgrade-all, --downgrade-all."},
		{"--bootstrap-server b --describe --upgrade-all", "Command must include exactly one action: --describe, --upgrade-all, --downgrade-all."},
		{"--describe", `Missing required argument "[bootstrap-server]"`},
		{"--bootstrap-server b --describe --dry-run", "Command can contain --dry-run option only when either --upgrade-all or --downgrade-all actions are provided."},
		{"--bogus", `Exception in thread "main" joptsimple.UnrecognizedOptionException: bogus is not a recognized option`},
	} {
		got := runFeatures(strings.Fields(c.args)...)
		assert.Equal(t, 1, got.code, c.args)
		assert.Equal(t, c.want, firstLine(got.stderr), c.args)
		assert.Empty(t, got.stdout, c.args)
	}
}

func TestFeatureCommandsThatMakeNoSense(t *testing.T) {
	t.Setenv("BARNABAS_COMPAT", "3.9.1")
	for _, c := range []struct{ args, want string }{
		{"", "kafka-features: error: too few arguments\n"},
		{"describe", "kafka-features: error: one of the arguments --bootstrap-server --bootstrap-controller is required\n"},
		{"--bootstrap-server b downgrade --foo", "kafka-features: error: unrecognized arguments: '--foo'\n"},
		{"--bootstrap-controller b describe", "This cluster has no controllers of its own"},
		{"--bootstrap-server 127.0.0.1:1 upgrade", "You must specify at least one feature to upgrade\n"},
		{"--bootstrap-server 127.0.0.1:1 disable", "You must specify at least one feature to disable\n"},
		{"--bootstrap-server 127.0.0.1:1 upgrade --feature a", "Can't parse feature=level string a: equals sign not found.\n"},
		{"--bootstrap-server 127.0.0.1:1 upgrade --feature a=x", "Can't parse feature=level string a=x: unable to parse x as a short.\n"},
		{"--bootstrap-server 127.0.0.1:1 upgrade --feature a=1 --feature a=2", "Feature a was specified more than once.\n"},
		{"--bootstrap-server 127.0.0.1:1 upgrade --feature a=0", "The upgradeType flag should be set to SAFE_DOWNGRADE or UNSAFE_DOWNGRADE when the provided maxVersionLevel:0 is < 1.\n"},
		{"--bootstrap-server 127.0.0.1:1 downgrade --feature a=-1", "Cannot specify a negative version level.\n"},
		{"--bootstrap-server 127.0.0.1:1 upgrade --metadata 2.0", "Cannot specify a negative version level.\n"},
		{"--bootstrap-server 127.0.0.1:1 upgrade --metadata 7.7", "Unsupported metadata.version 7.7. Supported metadata.version are 3.3-IV0, 3.3-IV1"},
	} {
		got := runFeatures(strings.Fields(c.args)...)
		assert.Equal(t, 1, got.code, c.args)
		assert.Contains(t, got.stderr, c.want, c.args)
		assert.Empty(t, got.stdout, c.args)
	}
}

func TestASubCommandIsUnderstoodWithoutAskingForTheNewerTexts(t *testing.T) {
	assert.Contains(t, runFeatures("describe").stderr, "one of the arguments --bootstrap-server --bootstrap-controller is required")
}

func TestALevelOfMetadataIsNamedByItsRelease(t *testing.T) {
	for name, want := range map[string]int16{"3.0-IV1": 1, "3.3-IV3": 7, "3.3": 7, "3.3.2": 7, "3.9": 21, "3.9-IV0": 21, "3.5": 11} {
		level, err := metadataLevel(name)
		require.NoError(t, err, name)
		assert.Equal(t, want, level, name)
	}
	for _, name := range []string{"", "3", "3.", "2.8", "3.3-IV9", "4.0", "x"} {
		_, err := metadataLevel(name)
		assert.Error(t, err, name)
	}
	assert.Equal(t, "3.9-IV0", levelName(metadataVersion, 21))
	assert.Equal(t, "UNKNOWN 0", levelName(metadataVersion, 0))
	assert.Equal(t, "UNKNOWN 99", levelName(metadataVersion, 99))
	assert.Equal(t, "5", levelName("group.version", 5))
}

func TestFeaturesAreShownAsEachReleaseShowsThem(t *testing.T) {
	var out bytes.Buffer
	face{stdout: &out}.printFeatures(describedFeatures{map[string]featureLevels{"b": {1, 3}}, map[string]featureLevels{"a": {1, 2}, "b": {1, 3}}, "7"})
	assert.Equal(t, "Feature: a\tSupportedMinVersion: -\tSupportedMaxVersion: -\tFinalizedMinVersionLevel: 1\tFinalizedMaxVersionLevel: 2\tEpoch: 7\n"+
		"Feature: b\tSupportedMinVersion: 1\tSupportedMaxVersion: 3\tFinalizedMinVersionLevel: 1\tFinalizedMaxVersionLevel: 3\tEpoch: 7\n", out.String())
}

func TestWhatBecameOfFeaturesIsTold(t *testing.T) {
	updates := map[string]featureUpdate{"a": {2, featureUpgrade}, "b": {0, featureDowngrade}}
	results := map[string]error{"a": nil, "b": errors.New("why not.")}
	for args, want := range map[string]string{
		"upgrade":             "a was upgraded to 2.\nCould not upgrade b to 0. why not.\n",
		"downgrade --dry-run": "a can be downgraded to 2.\nCan not downgrade b to 0. why not.\n",
		"disable":             "a was disabled.\nCould not disable b. why not.\n",
	} {
		call, err := featuresCommand.Parse(append([]string{"--bootstrap-server", "x"}, strings.Fields(args)...))
		require.NoError(t, err)
		var out bytes.Buffer
		assert.EqualError(t, printFeatureUpdates(&out, call, updates, results), "1 out of 2 operation(s) failed.")
		assert.Equal(t, want, out.String())
	}
}
