package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/tools/options"
)

var consumerGroupsOptions = []options.Option{
	{Name: "all-groups", Doc: "All groups."},
	{Name: "all-topics", Doc: "With --reset-offsets: all topics that the group has offsets of."},
	{Name: "bootstrap-server", Arity: options.One, Value: "String: server to connect to", Doc: "Brokers to connect to, as host:port, separated by commas. Required."},
	{Name: "by-duration", Arity: options.One, Value: "String: duration", Doc: "Reset to the offsets of that long ago: PnDTnHnMnS."},
	{Name: "command-config", Arity: options.One, Value: "String: command config property file", Doc: "Property file with settings of the client."},
	{Name: "delete", Doc: "Delete groups with all their offsets."},
	{Name: "delete-offsets", Doc: "Delete the offsets of topics of one group."},
	{Name: "describe", Doc: "Show the offsets and lags of groups, or what --members and --state ask for."},
	{Name: "dry-run", Doc: "With --reset-offsets: only show the new offsets."},
	{Name: "execute", Doc: "With --reset-offsets: do it."},
	{Name: "export", Doc: "With --reset-offsets: print the new offsets as CSV."},
	{Name: "from-file", Arity: options.One, Value: "String: path to CSV file", Doc: "Reset to the offsets in a CSV file."},
	{Name: "group", Arity: options.Many, Value: "String: consumer group", Doc: "The group; may be given more than once."},
	{Name: "help", Doc: "Print this text."},
	{Name: "list", Doc: "List all groups."},
	{Name: "members", Doc: "With --describe: show the members of the group."},
	{Name: "offsets", Doc: "With --describe: show offsets and lags, which is what is shown without it."},
	{Name: "output", Arity: options.One, Value: "String: text|json", Doc: "With --list and --describe: json prints one document with all that is known, and failures end with exit code 1. (default: text)"},
	{Name: "reset-offsets", Doc: "Set the offsets of a group without members, by one of --to-datetime, --by-duration, --to-earliest, --to-latest, --shift-by, --from-file, --to-current and --to-offset."},
	{Name: "shift-by", Arity: options.One, Value: "Long: number-of-offsets", Doc: "Reset to so many offsets after the current one, before it when negative."},
	{Name: "state", Arity: options.Maybe, Value: "String", Doc: "With --describe: show the state of the group. With --list: show states, of groups that are in one of those that follow."},
	{Name: "timeout", Arity: options.One, Value: "Long: timeout (ms)", Doc: "How long brokers may take. (default: 5000)"},
	{Name: "to-current", Doc: "Reset to the current offsets."},
	{Name: "to-datetime", Arity: options.One, Value: "String: datetime", Doc: "Reset to the offsets of a time: YYYY-MM-DDTHH:mm:SS.sss."},
	{Name: "to-earliest", Doc: "Reset to the first offsets."},
	{Name: "to-latest", Doc: "Reset to the end."},
	{Name: "to-offset", Arity: options.One, Value: "Long: offset", Doc: "Reset to one offset."},
	{Name: "topic", Arity: options.Many, Value: "String: topic", Doc: "The topic whose offsets are reset or deleted, with partitions as topic1:0,1,2; may be given more than once."},
	{Name: "type", Arity: options.Maybe, Value: "String", Doc: "With --list: show types, of groups that have one of those that follow."},
	{Name: "verbose", Doc: "With --describe: show assignments too."},
	{Name: "version", Doc: "Print the version."},
}

var groupActions = []string{"list", "describe", "delete", "reset-offsets", "delete-offsets"}

// ConsumerGroups is kafka-consumer-groups.
func ConsumerGroups(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.admin.ConsumerGroupCommand$", options: consumerGroupsOptions, needs: []string{"bootstrap-server"}, stdout: stdout, stderr: stderr,
		intro: "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset consumer group offsets."}
	if compat39() {
		f.class = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
	}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if reason := wrongGroupsCall(f, set); reason != "" {
		return f.usage(reason)
	}
	err := consumerGroups(f, set)
	var bad *badArgument
	switch {
	case err == nil:
		return 0
	case errors.As(err, &bad):
		return f.usage(bad.reason)
	case errors.Is(err, errFailed):
		return 1
	case slices.Contains(set.Values("output"), "json"):
		fmt.Fprintln(stderr, err)
		return 1
	case !errors.Is(err, errUnfinished):
		f.groupError(fmt.Sprintf("Executing consumer group command failed due to %s", executionFailure(err)))
		fmt.Fprint(stderr, stackTrace(err))
	}
	if strict() {
		return 1
	}
	return 0
}

// errFailed makes the exit code 1, and prints nothing.
var errFailed = errors.New("what was asked for cannot be told")

// groupError reports a failure where the original does.
func (f face) groupError(text string) { fmt.Fprintf(f.stdout, "\nError: %s\n", text) }

func wrongGroupsCall(f face, set *options.Set) string {
	given := func(names ...string) (n int) {
		for _, name := range names {
			if set.Has(name) {
				n++
			}
		}
		return n
	}
	if given(groupActions...) != 1 {
		return "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, --delete-offsets"
	}
	named := given("group", "all-groups") > 0
	switch {
	case given("group", "all-groups") == 2:
		return notTogether("group", "all-groups")
	case set.Has("describe") && !named:
		return "Option [describe] takes one of these options: [group], [all-groups]"
	case set.Has("describe") && given("members", "offsets", "state") > 1:
		return "Option [describe] takes at most one of these options: [members], [offsets], [state]"
	case set.Has("describe") && len(set.Values("state")) > 0:
		return "Option [describe] does not take a value for [state]"
	case set.Has("delete") && !named:
		return "Option [delete] takes one of these options: [group], [all-groups]"
	case set.Has("delete") && set.Has("topic"):
		return "The consumer does not support topic-specific offset deletion from a consumer group."
	case set.Has("delete-offsets") && (!set.Has("group") || !set.Has("topic")):
		return "Option [delete-offsets] takes the following options: [group], [topic]"
	case set.Has("output") && given("list", "describe") == 0:
		return "Option [output] takes one of these options: [list], [describe]"
	case !set.Has("reset-offsets"):
		return ""
	case given("dry-run", "execute") == 2:
		return "Option [reset-offsets] only accepts one of [execute] and [dry-run]"
	}
	if given("dry-run", "execute") == 0 {
		fmt.Fprintln(f.stderr, "WARN: No action will be performed as the --execute option is missing.In a future major release, the default behavior of this command will be to prompt the user before executing the reset rather than doing a dry run. You should add the --dry-run option explicitly if you are scripting this command and want to keep the current default behavior without prompting.")
	}
	if !named {
		return "Option [reset-offsets] takes one of these options: [group], [all-groups]"
	}
	return atMostOne(set, resetModes)
}

// groupTool is what all actions on groups need.
type groupTool struct {
	f       face
	set     *options.Set
	client  *kgo.Client
	cluster *cluster.Cluster
	ctx     context.Context
	json    bool
}

func consumerGroups(f face, set *options.Set) error {
	timeout, err := set.Int("timeout", 5000)
	if err != nil {
		return &badArgument{err.Error()}
	}
	output, err := set.Value("output")
	if err != nil {
		return &badArgument{err.Error()}
	}
	if set.Has("output") && output != "json" && output != "text" {
		return &badArgument{fmt.Sprintf("Invalid output '%s'. Valid outputs are: text, json", output)}
	}
	client, err := adminClient.connect(set)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), max(time.Duration(timeout)*time.Millisecond, time.Second)*4)
	defer cancel()
	g := groupTool{f, set, client, cluster.New(client), ctx, output == "json"}
	switch {
	case set.Has("list"):
		return g.list()
	case set.Has("describe"):
		return g.describe()
	case set.Has("delete"):
		return g.deleteGroups()
	case set.Has("delete-offsets"):
		return g.deleteOffsets()
	}
	return g.reset()
}

// groups are those that were named, or all.
func (g groupTool) groups() ([]string, error) {
	if !g.set.Has("all-groups") {
		names := slices.Clone(g.set.Values("group"))
		slices.Sort(names)
		return slices.Compact(names), nil
	}
	listed, err := g.cluster.Groups(g.ctx)
	var names []string
	for _, l := range listed {
		names = append(names, l.Name)
	}
	return names, err
}

// groupStates are the states that a group can be in, in the originals' order.
func groupStates() []string {
	states := []string{"PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty"}
	if compat39() {
		states = append(states, "Assigning", "Reconciling")
	}
	return states
}

func (g groupTool) list() error {
	wanted := map[string][]string{}
	for _, option := range []string{"state", "type"} {
		for _, value := range g.set.Values(option) {
			for _, part := range strings.Split(value, ",") {
				wanted[option] = append(wanted[option], strings.ToLower(strings.TrimSpace(part)))
			}
		}
	}
	for _, state := range wanted["state"] {
		if !slices.ContainsFunc(groupStates(), func(known string) bool { return strings.EqualFold(known, state) }) {
			return &badArgument{fmt.Sprintf("Invalid state list '%s'. Valid states are: %s", strings.Join(g.set.Values("state"), ","), strings.Join(groupStates(), ", "))}
		}
	}
	listed, err := g.cluster.Groups(g.ctx)
	if err != nil {
		return err
	}
	listed = slices.DeleteFunc(listed, func(l cluster.ListedGroup) bool {
		states, types := wanted["state"], wanted["type"]
		return states != nil && !slices.Contains(states, strings.ToLower(l.State)) || types != nil && !slices.Contains(types, l.Type)
	})
	if g.json {
		g.printJSON(listedGroupsJSON(listed))
		return nil
	}
	rows := [][]string{{"GROUP"}}
	if g.set.Has("type") {
		rows[0] = append(rows[0], "TYPE")
	}
	if g.set.Has("state") {
		rows[0] = append(rows[0], "STATE")
	}
	width := 15
	for _, l := range listed {
		row := []string{l.Name}
		if g.set.Has("type") {
			row = append(row, strings.ToUpper(l.Type[:1])+l.Type[1:])
		}
		if g.set.Has("state") {
			row = append(row, l.State)
		}
		rows, width = append(rows, row), max(width, len(l.Name))
	}
	if len(rows[0]) == 1 {
		for _, row := range rows[1:] {
			fmt.Fprintln(g.f.stdout, row[0])
		}
		return nil
	}
	for _, row := range rows {
		if compat39() || len(row) > 2 {
			const wider = 10 // than the longest name
			fmt.Fprintf(g.f.stdout, "%-*s", width+wider, row[0])
			for _, cell := range row[1:] {
				fmt.Fprintf(g.f.stdout, " %-20s", cell)
			}
			fmt.Fprintln(g.f.stdout)
			continue
		}
		fmt.Fprintf(g.f.stdout, "%-*s %s\n", width, row[0], row[1])
	}
	return nil
}

func (g groupTool) deleteGroups() error {
	groups, err := g.groups()
	if err != nil {
		return err
	}
	var done, failed []string
	for _, group := range groups {
		err := g.cluster.DeleteGroup(g.ctx, group)
		if err == nil {
			done = append(done, "'"+group+"'")
			continue
		}
		failed = append(failed, fmt.Sprintf("* Group '%s' could not be deleted due to: java.util.concurrent.ExecutionException: %s: %s", group, exceptionClass(err), described(err)))
	}
	if failed == nil {
		fmt.Fprintf(g.f.stdout, "Deletion of requested consumer groups (%s) was successful.\n", strings.Join(done, ", "))
		return nil
	}
	g.f.groupError("Deletion of some consumer groups failed:")
	fmt.Fprintln(g.f.stdout, strings.Join(failed, "\n"))
	if done != nil {
		fmt.Fprintf(g.f.stdout, "\nThese consumer groups were deleted successfully: %s\n", strings.Join(done, ", "))
	}
	return errUnfinished
}

// described is what Kafka says of an error code.
func described(err error) string {
	var code *kerr.Error
	if errors.As(err, &code) {
		return code.Description
	}
	return err.Error()
}

func (g groupTool) deleteOffsets() error {
	group := g.set.Values("group")[0]
	whole, partitions, err := cluster.ParseScope(g.set.Values("topic"))
	if err != nil {
		return badReset(err)
	}
	found, unknown, err := g.cluster.Replicas(g.ctx, whole)
	if err != nil {
		return err
	}
	partitions = append(partitions, found.Partitions()...)
	slices.SortFunc(partitions, plan.Partition.Compare)
	results, err := g.cluster.ForgetOffsets(g.ctx, group, partitions)
	failures := 0
	switch {
	case err == nil:
		for _, err := range results {
			if err != nil {
				failures++
			}
		}
		if failures > 0 {
			g.f.groupError("Encounter some partition level error, see the follow-up details:")
		} else {
			fmt.Fprintf(g.f.stdout, "Request succeed for deleting offsets with topic %s group %s\n", strings.Join(g.set.Values("topic"), ", "), group)
		}
	case errors.Is(err, kerr.InvalidGroupID):
		g.f.groupError(fmt.Sprintf("'%s' is not valid.", group))
	case errors.Is(err, kerr.GroupIDNotFound):
		g.f.groupError(fmt.Sprintf("'%s' does not exist.", group))
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		g.f.groupError(fmt.Sprintf("Access to '%s' is not authorized.", group))
	case errors.Is(err, kerr.NonEmptyGroup):
		g.f.groupError(fmt.Sprintf("Deleting offsets of a consumer group '%s' is forbidden if the group is not empty.", group))
	default:
		g.f.groupError(fmt.Sprintf("Encounter some unknown error: %s", err))
	}
	const row = "%-30s %-15s %-15s\n"
	fmt.Fprintf(g.f.stdout, "\n"+row, "TOPIC", "PARTITION", "STATUS")
	for _, topic := range sortedKeys(unknown) {
		fmt.Fprintf(g.f.stdout, row, topic, "Not Provided", "Error: "+executionFailure(unknown[topic]))
	}
	for _, p := range partitions {
		status := "Successful"
		if fault := cmp.Or(err, results[p]); fault != nil {
			status = "Error: " + executionFailure(fault)
		}
		fmt.Fprintf(g.f.stdout, row, p.Topic, strconv.Itoa(int(p.ID)), status)
	}
	if err != nil || failures > 0 || len(unknown) > 0 {
		return errUnfinished
	}
	return nil
}
