package tools

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/tools/options"
)

var featuresOptions = []options.Option{
	{Name: "bootstrap-server", Arity: options.One, Value: "String: server to connect to", Doc: "Brokers to connect to, as host:port, separated by commas. Required."},
	{Name: "command-config", Arity: options.Maybe, Value: "String: command config property file", Doc: "Property file with settings of the client."},
	{Name: "describe", Doc: "Show the features that a broker supports, and those that are finalized."},
	{Name: "downgrade-all", Doc: "Take finalized features that this tool does not know away."},
	{Name: "dry-run", Doc: "With --upgrade-all and --downgrade-all: only show what would be done."},
	{Name: "help", Doc: "Print this text."},
	{Name: "upgrade-all", Doc: "Bring finalized features to the highest levels that this tool knows. It knows none."},
	{Name: "version", Doc: "Print the version."},
}

// featuresByFlags is the face of 2.8.
func featuresByFlags(args []string, stdout, stderr io.Writer) int {
	f := face{class: "kafka.admin.FeatureCommand", intro: "This tool describes and updates finalized features.", options: featuresOptions, misread: exception, stdout: stdout, stderr: stderr}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	actions := 0
	for _, action := range []string{"describe", "upgrade-all", "downgrade-all"} {
		if set.Has(action) {
			actions++
		}
	}
	switch {
	case actions != 1:
		return f.usage("Command must include exactly one action: --describe, --upgrade-all, --downgrade-all.")
	case !set.Has("bootstrap-server"):
		return f.usage(missing("bootstrap-server"))
	case set.Has("dry-run") && set.Has("describe"):
		return f.usage("Command can contain --dry-run option only when either --upgrade-all or --downgrade-all actions are provided.")
	}
	err := featuresAsked(f, set)
	if err == nil {
		return 0
	}
	if !errors.Is(err, errFailed) {
		fmt.Fprintf(stderr, "\nError encountered when executing command: %s\n", stackTrace(err))
	}
	return 1
}

func featuresAsked(f face, set *options.Set) error {
	client, err := adminClient.connect(set)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), featureTime)
	defer cancel()
	d, err := describeFeatures(ctx, client)
	switch {
	case err != nil:
		return err
	case set.Has("describe"):
		f.printFeatures(d)
		return nil
	case set.Has("downgrade-all"):
		return takeFeaturesAway(ctx, f, client, d, set.Has("dry-run"))
	}
	return nil // no feature is known here that could be finalized or upgraded
}

func (f face) printFeatures(d describedFeatures) {
	level := func(of map[string]featureLevels, name string) (low, high string) {
		if l, there := of[name]; there {
			return fmt.Sprint(l.low), fmt.Sprint(l.high)
		}
		return "-", "-"
	}
	for _, name := range d.names() {
		supportedLow, supportedHigh := level(d.supported, name)
		low, high := level(d.finalized, name)
		fmt.Fprintf(f.stdout, "Feature: %s\tSupportedMinVersion: %s\tSupportedMaxVersion: %s\tFinalizedMinVersionLevel: %s\tFinalizedMaxVersionLevel: %s\tEpoch: %s\n",
			name, supportedLow, supportedHigh, low, high, d.epoch)
	}
}

// takeFeaturesAway deletes what is finalized: none of it is known here.
func takeFeaturesAway(ctx context.Context, f face, client *kgo.Client, d describedFeatures, dryRun bool) error {
	updates := map[string]featureUpdate{}
	for name := range d.finalized {
		updates[name] = featureUpdate{0, featureDowngrade}
	}
	if len(updates) == 0 {
		return nil
	}
	line := func(name string) string {
		return fmt.Sprintf("%11s\tFeature: %s\tExistingFinalizedMaxVersion: %d\tNewFinalizedMaxVersion: -", "[Delete]", name, d.finalized[name].high)
	}
	if dryRun {
		fmt.Fprint(f.stdout, "Expected feature updates:")
		for i, name := range sortedKeys(updates) {
			if i > 0 {
				fmt.Fprintln(f.stdout)
			}
			fmt.Fprint(f.stdout, line(name))
		}
		fmt.Fprintln(f.stdout)
		return nil
	}
	results, err := updateFeatures(ctx, client, updates, false)
	if err != nil {
		return err
	}
	var failed error
	for _, name := range sortedKeys(results) {
		if err := results[name]; err != nil {
			fmt.Fprintf(f.stdout, "%s\tResult: FAILED due to %s: %s\n", line(name), exceptionClass(err), err)
			failed = errFailed
			continue
		}
		fmt.Fprintf(f.stdout, "%s\tResult: OK\n", line(name))
	}
	return failed
}
