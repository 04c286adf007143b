package tools

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"barnabas/config"
	"barnabas/tools/subcommands"
)

// A broker that has ZooKeeper formats its log directories itself when it starts. So this tool shows them, makes ids, and refuses to format.

var storageConfig = subcommands.Argument{Name: "config", Short: "c", Value: "CONFIG", Required: true, Doc: "The broker's configuration file."}

var storageCommand = subcommands.Command{
	Name: "kafka-storage", Doc: "The Kafka storage tool.",
	Commands: []subcommands.Command{
		{Name: "info", Doc: "Show the log directories of this node.", Arguments: []subcommands.Argument{storageConfig}},
		{Name: "format", Doc: "Format log directories, which is for nodes without ZooKeeper only.", Arguments: []subcommands.Argument{storageConfig,
			{Name: "cluster-id", Short: "t", Value: "CLUSTER_ID", Required: true, Doc: "The id of the cluster."},
			{Name: "add-scram", Short: "S", Value: "ADD_SCRAM", Doc: "A user with its SCRAM credentials. Any number of times."},
			{Name: "ignore-formatted", Short: "g", Doc: "Pass directories over that are formatted."},
			{Name: "release-version", Short: "r", Value: "RELEASE_VERSION", Doc: "The release whose features are to be used."},
			{Name: "feature", Short: "f", Value: "FEATURE", Doc: "A feature with its level. Any number of times."},
			{Name: "standalone", Short: "s", Doc: "The node is the only controller."},
			{Name: "no-initial-controllers", Short: "N", Doc: "The controllers are not known yet."},
			{Name: "initial-controllers", Short: "I", Value: "INITIAL_CONTROLLERS", Doc: "The controllers, as id@host:port:directory, separated by commas."}}},
		{Name: "random-uuid", Doc: "Print a random id."},
	},
}

// Storage is kafka-storage.
func Storage(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	call, err := storageCommand.Parse(args)
	if err != nil {
		code := subcommands.Report(err, stdout, stderr)
		if compat39() {
			code = helpIsNoFailure(err, code)
		}
		return code
	}
	if call.Command == "random-uuid" {
		fmt.Fprintln(stdout, randomUUID())
		return 0
	}
	values, err := config.Load(call.Value("config"), nil)
	if err != nil {
		fmt.Fprintf(stderr, "Exception in thread \"main\" org.apache.kafka.common.config.ConfigException: %s\n", err)
		return 1
	}
	if call.Command == "format" {
		fmt.Fprintln(stderr, "The kafka configuration file appears to be for a legacy cluster. Formatting is only supported for clusters in KRaft mode.")
		return 1
	}
	dirs := slices.Sorted(slices.Values(values.LogDirs()))
	return showStorage(stdout, slices.Compact(dirs))
}

// logDirectory is a log directory with what its meta.properties says, or what is wrong with it.
type logDirectory struct {
	path    string
	found   bool
	meta    map[string]string
	problem string
}

func inspectDirectory(path string) logDirectory {
	d := logDirectory{path: path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.problem = path + " does not exist"
		return d
	case err != nil:
		d.problem = err.Error()
		return d
	case !info.IsDir():
		d.problem = path + " is not a directory"
		return d
	}
	d.found = true
	file := filepath.Join(path, "meta.properties")
	meta, err := readProperties(file)
	switch version := meta["version"]; {
	case errors.Is(err, fs.ErrNotExist):
		d.problem = path + " is not formatted."
	case err != nil:
		d.problem = fmt.Sprintf("Error loading %s: %s", file, err)
	case version != "" && version != "0" && version != "1":
		d.problem = fmt.Sprintf("Unsupported version for %s: %s", file, version)
	default:
		d.meta = meta
	}
	return d
}

// showStorage shows directories and what is wrong with them, which makes the exit code 1.
func showStorage(out io.Writer, paths []string) int {
	var found, problems []string
	var first map[string]string
	for _, path := range paths {
		d := inspectDirectory(path)
		if d.found {
			found = append(found, path)
		}
		switch {
		case d.problem != "":
			problems = append(problems, d.problem)
		case first == nil:
			first = d.meta
		case first["cluster.id"] != d.meta["cluster.id"]:
			problems = append(problems, "Mismatched cluster IDs between storage directories.")
		case first["broker.id"] != d.meta["broker.id"]:
			problems = append(problems, "Mismatched node IDs between storage directories.")
		}
	}
	if first["version"] == "1" {
		problems = append(problems, "The kafka configuration file appears to be for a legacy cluster, but the directories are formatted for a cluster in KRaft mode.")
	}
	listOf(out, "Found log directory:", "Found log directories:", found)
	if first != nil {
		var settings []string
		for _, name := range sortedKeys(first) {
			settings = append(settings, name+"="+first[name])
		}
		fmt.Fprintf(out, "Found metadata: {%s}\n\n", strings.Join(settings, ", "))
	}
	listOf(out, "Found problem:", "Found problems:", problems)
	if problems != nil {
		return 1
	}
	return 0
}

// listOf writes a heading, things, and an empty line; nothing when there are none.
func listOf(out io.Writer, one, several string, list []string) {
	switch len(list) {
	case 0:
		return
	case 1:
		fmt.Fprintln(out, one)
	default:
		fmt.Fprintln(out, several)
	}
	for _, item := range list {
		fmt.Fprintf(out, "  %s\n", item)
	}
	fmt.Fprintln(out)
}
