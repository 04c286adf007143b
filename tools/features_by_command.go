package tools

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/tools/subcommands"
)

var featuresCommand = subcommands.Command{
	Name: "kafka-features", Doc: "This tool shows and changes the levels of features.", OneOf: [][]string{{"bootstrap-server", "bootstrap-controller"}},
	Arguments: brokersOrControllers,
	Commands: []subcommands.Command{
		{Name: "describe", Doc: "Show the levels that features have."},
		{Name: "upgrade", Doc: "Raise the levels of features.", Arguments: []subcommands.Argument{
			{Name: "metadata", Value: "METADATA", Doc: "The level of metadata.version, by the name of a release such as 3.3-IV3."}, featureLevel, featureDryRun}},
		{Name: "downgrade", Doc: "Lower the levels of features.", Arguments: []subcommands.Argument{
			{Name: "metadata", Value: "METADATA", Doc: "The level of metadata.version, by the name of a release such as 3.3-IV0."}, featureLevel, featureUnsafe, featureDryRun}},
		{Name: "disable", Doc: "Take features away, which is what lowering them to 0 does.", Arguments: []subcommands.Argument{
			{Name: "feature", Value: "FEATURE", Doc: "A feature. Any number of times."}, featureUnsafe, featureDryRun}},
	},
}

var (
	featureLevel  = subcommands.Argument{Name: "feature", Value: "FEATURE", Doc: "A feature with the level that it is to have, such as metadata.version=5. Any number of times."}
	featureUnsafe = subcommands.Argument{Name: "unsafe", Doc: "Do it also where metadata may be lost for good."}
	featureDryRun = subcommands.Argument{Name: "dry-run", Doc: "Only tell whether it would be done."}
)

// featuresByCommand is the face of 3.3 and later.
func featuresByCommand(args []string, stdout, stderr io.Writer) int {
	call, err := featuresCommand.Parse(args)
	if err != nil {
		return subcommands.Report(err, stdout, stderr)
	}
	if err := featuresCalled(stdout, call); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

func featuresCalled(out io.Writer, call *subcommands.Call) error {
	if call.Has("bootstrap-controller") {
		return errNoControllers
	}
	client, err := adminClient.connect(callArguments{call})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), featureTime)
	defer cancel()
	if call.Command == "describe" {
		return describeFeatureLevels(ctx, out, client)
	}
	updates, err := featureUpdates(call)
	if err != nil {
		return err
	}
	if len(updates) == 0 {
		return &badArgument{"You must specify at least one feature to " + call.Command}
	}
	results, err := updateFeatures(ctx, client, updates, call.Has("dry-run"))
	if err != nil { // told of each
		results = map[string]error{}
		for name := range updates {
			results[name] = err
		}
	}
	return printFeatureUpdates(out, call, updates, results)
}

func describeFeatureLevels(ctx context.Context, out io.Writer, client *kgo.Client) error {
	d, err := describeFeatures(ctx, client)
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(d.supported) {
		fmt.Fprintf(out, "Feature: %s\tSupportedMinVersion: %s\tSupportedMaxVersion: %s\tFinalizedVersionLevel: %s\tEpoch: %s\n",
			name, levelName(name, d.supported[name].low), levelName(name, d.supported[name].high), levelName(name, d.finalized[name].high), d.epoch)
	}
	return nil
}

// featureUpdates reads which levels features are to have.
func featureUpdates(call *subcommands.Call) (map[string]featureUpdate, error) {
	kind := featureUpgrade
	switch {
	case call.Command == "upgrade":
	case call.Has("unsafe"):
		kind = featureUnsafeDowngrade
	default:
		kind = featureDowngrade
	}
	updates := map[string]featureUpdate{}
	if call.Has("metadata") {
		level, err := metadataLevel(call.Value("metadata"))
		if err != nil {
			return nil, err
		}
		updates[metadataVersion] = featureUpdate{level, kind}
	}
	for _, text := range call.Values("feature") {
		name, level := text, int64(0)
		if call.Command != "disable" {
			before, after, found := strings.Cut(text, "=")
			if !found {
				return nil, &badArgument{fmt.Sprintf("Can't parse feature=level string %s: equals sign not found.", text)}
			}
			name = strings.TrimSpace(before)
			var err error
			if level, err = strconv.ParseInt(strings.TrimSpace(after), 10, 16); err != nil {
				return nil, &badArgument{fmt.Sprintf("Can't parse feature=level string %s: unable to parse %s as a short.", text, strings.TrimSpace(after))}
			}
		}
		if _, twice := updates[name]; twice {
			return nil, &badArgument{fmt.Sprintf("Feature %s was specified more than once.", name)}
		}
		if strings.TrimSpace(name) == "" {
			return nil, &badArgument{"Provided feature can not be empty."}
		}
		switch {
		case level == 0 && kind == featureUpgrade:
			return nil, &badArgument{"The upgradeType flag should be set to SAFE_DOWNGRADE or UNSAFE_DOWNGRADE when the provided maxVersionLevel:0 is < 1."}
		case level < 0:
			return nil, &badArgument{"Cannot specify a negative version level."}
		}
		updates[name] = featureUpdate{int16(level), kind}
	}
	return updates, nil
}

func printFeatureUpdates(out io.Writer, call *subcommands.Call, updates map[string]featureUpdate, results map[string]error) error {
	failed := 0
	for _, name := range sortedKeys(results) {
		what := fmt.Sprintf("%s %s to %d", call.Command, name, updates[name].level)
		done := fmt.Sprintf("%sd to %d.", call.Command, updates[name].level)
		if call.Command == "disable" {
			what, done = "disable "+name, "disabled."
		}
		err := results[name]
		switch {
		case err == nil && call.Has("dry-run"):
			fmt.Fprintf(out, "%s can be %s\n", name, done)
		case err == nil:
			fmt.Fprintf(out, "%s was %s\n", name, done)
		case call.Has("dry-run"):
			failed++
			fmt.Fprintf(out, "Can not %s. %s\n", what, err)
		default:
			failed++
			fmt.Fprintf(out, "Could not %s. %s\n", what, err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d out of %d operation(s) failed.", failed, len(updates))
	}
	return nil
}
