package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin/cluster"
	"barnabas/tools/options"
)

// An application of Kafka Streams is reset by what brokers hold of it: the offsets that its group, which has the application's name, has committed, and the topics that it has made for itself. What
// its instances keep on their own disks only they can delete.

var streamsResetOptions = []options.Option{
	{Name: "application-id", Arity: options.One, Value: "String: id", Required: true, Doc: "The application's id (application.id)."},
	{Name: "bootstrap-server", Arity: options.One, Value: "String: server to connect to", Doc: "Brokers to connect to, as host:port, separated by commas. (default: localhost:9092)"},
	{Name: "bootstrap-servers", Arity: options.One, Value: "String: urls", Doc: "Older name of --bootstrap-server."},
	{Name: "by-duration", Arity: options.One, Value: "String", Doc: "Reset input topics to the offsets of that long ago: PnDTnHnMnS."},
	{Name: "config-file", Arity: options.One, Value: "String: file name", Doc: "Property file with settings of the client."},
	{Name: "dry-run", Doc: "Only show what would be done."},
	{Name: "execute", Doc: "Do it, which is what is done without it too."},
	{Name: "force", Doc: "Remove the members that the group has. Instances that still run would join again: stop them first. What it is for are those that have stopped, but whose session lasts."},
	{Name: "from-file", Arity: options.One, Value: "String", Doc: "Reset input topics to the offsets in a CSV file: topic,partition,offset."},
	{Name: "help", Doc: "Print this text."},
	{Name: "input-topics", Arity: options.Many, Value: "String: list", Doc: "Topics that the application reads, separated by commas. Their offsets are reset to the first ones, or as another option says."},
	{Name: "intermediate-topics", Arity: options.Many, Value: "String: list", Doc: "Topics that the application writes and reads again, separated by commas. Their offsets are set to the end."},
	{Name: "internal-topics", Arity: options.Many, Value: "String: list", Doc: "Delete only these of the application's own topics, separated by commas. --dry-run shows all of them."},
	{Name: "shift-by", Arity: options.One, Value: "Long: number-of-offsets", Doc: "Reset input topics to so many offsets after the current ones, before them when negative."},
	{Name: "to-datetime", Arity: options.One, Value: "String", Doc: "Reset input topics to the offsets of a time: YYYY-MM-DDTHH:mm:SS.sss."},
	{Name: "to-earliest", Doc: "Reset input topics to the first offsets."},
	{Name: "to-latest", Doc: "Reset input topics to the end."},
	{Name: "to-offset", Arity: options.One, Value: "Long", Doc: "Reset input topics to one offset."},
	{Name: "version", Doc: "Print the version."},
	{Name: "zookeeper", Doc: "Accepted for old scripts; nothing is asked of ZooKeeper."},
}

// streamsResetModes are the ways to say where to, of which at most one can be given.
var streamsResetModes = []string{"to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "from-file", "shift-by"}

// StreamsReset is kafka-streams-application-reset.
func StreamsReset(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.tools.StreamsResetter", options: streamsResetOptions, stdout: stdout, stderr: stderr,
		intro: `This tool helps to reset a Streams application, so that it processes its input from scratch.
* The offsets of its input topics are reset, to the first ones or to where an option says; those of its intermediate topics go to the end.
* Its own topics (<application.id>-...-changelog, -repartition and the like) are found and deleted. Output topics are left as they are.
* What its instances keep on their own disks stays there: delete it by KafkaStreams#cleanUp(), or by hand below state.dir.
* All its instances have to be stopped before.
What is done cannot be undone: look at it with --dry-run first.
`}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if set.Has("execute") && set.Has("dry-run") {
		return f.usage("Only one of --dry-run and --execute can be specified")
	}
	if reason := atMostOne(set, streamsResetModes); reason != "" {
		return f.usage(reason)
	}
	whole, err := streamsReset(f, set)
	if err != nil {
		trace := stackTrace(err)
		first, _, _ := strings.Cut(trace, "\n")
		fmt.Fprintf(stderr, "ERROR: %s\n%s", first, trace)
		return 1
	}
	if !whole {
		return 1
	}
	return 0
}

// streamsApplication is what is reset.
type streamsApplication struct {
	f                   face
	set                 *options.Set
	cluster             *cluster.Cluster
	ctx                 context.Context
	settings            map[string]string // of the client
	id                  string
	input, intermediate []string
	topics              []string // those that are there, without the brokers' own
	dryRun              bool
}

// streamsReset resets an application; whole is false when topics that were named are not there.
func streamsReset(f face, set *options.Set) (whole bool, err error) {
	const patience = 5 * time.Minute
	settings, err := clientOptions{[]string{"bootstrap-server", "bootstrap-servers"}, "config-file", ""}.settings(set)
	if err != nil {
		return false, err
	}
	if !set.Has("bootstrap-server") && !set.Has("bootstrap-servers") {
		settings["bootstrap.servers"] = "localhost:9092"
	}
	id, err := set.Value("application-id")
	if err != nil {
		return false, err
	}
	client, err := connect(settings)
	if err != nil {
		return false, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := streamsApplication{f: f, set: set, cluster: cluster.New(client), ctx: ctx, settings: settings, id: id, dryRun: set.Has("dry-run"),
		input: listed(set, "input-topics"), intermediate: listed(set, "intermediate-topics")}
	if err := a.endMembers(); err != nil {
		return false, err
	}
	if a.topics, err = a.cluster.TopicNames(ctx); err != nil {
		return false, err
	}
	a.topics = slices.DeleteFunc(a.topics, cluster.IsInternal)
	if a.dryRun {
		fmt.Fprintln(f.stdout, "----Dry run displays the actions which will be performed when running Streams Reset Tool----")
	}
	if whole, err = a.resetOffsets(); err != nil {
		return false, err
	}
	return whole, a.deleteOwnTopics()
}

// listed are the values of an option that takes several, separated by commas.
func listed(set *options.Set, option string) (list []string) {
	for _, value := range set.Values(option) {
		list = append(list, strings.Split(value, ",")...)
	}
	return list
}

// endMembers sees to it that nobody is in the group: whoever is would go on committing.
func (a streamsApplication) endMembers() error {
	described, err := a.cluster.DescribeGroups(a.ctx, []string{a.id})
	if err != nil {
		return err
	}
	group := described[a.id]
	switch {
	case errors.Is(group.Err, kerr.GroupIDNotFound):
		return nil
	case group.Err != nil:
		return group.Err
	case len(group.Members) == 0:
		return nil
	case !a.set.Has("force"):
		texts := make([]string, len(group.Members))
		for i, m := range group.Members {
			texts[i] = memberText(m)
		}
		return &thrown{"java.lang.IllegalStateException", fmt.Sprintf("Consumer group '%s' is still active and has following members: %s. "+
			"Make sure to stop all running application instances before running the reset tool. You can use option '--force' to remove active members from the group.", a.id, javaList(texts))}
	}
	fmt.Fprintf(a.f.stdout, "Force deleting all active members in the group: %s\n", a.id)
	return a.cluster.RemoveMembers(a.ctx, a.id, group.Members)
}

// memberText is a member as the originals print it.
func memberText(m kadm.DescribedGroupMember) string {
	instance, target := "null", ""
	if m.InstanceID != nil {
		instance = *m.InstanceID
	}
	if compat39() {
		target = ", targetAssignment=Optional.empty"
	}
	return fmt.Sprintf("(memberId=%s, groupInstanceId=%s, clientId=%s, host=%s, assignment=(topicPartitions=%s)%s)", m.MemberID, instance, m.ClientID, m.ClientHost,
		joinPartitions(cluster.Assigned(m), ","), target)
}

// madeByStreams matches what Kafka Streams calls, behind the application's id, the topics that it makes.
var madeByStreams = regexp.MustCompile(`(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic|.-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)$`)

// ownTopics are the topics that the application made for itself. One that was named as input or intermediate topic is none, whatever its name looks like.
func (a streamsApplication) ownTopics() (own []string) {
	for _, topic := range a.topics {
		if strings.HasPrefix(topic, a.id+"-") && madeByStreams.MatchString(topic) && !slices.Contains(a.input, topic) && !slices.Contains(a.intermediate, topic) {
			own = append(own, topic)
		}
	}
	return own
}

// deleteOwnTopics deletes the application's own topics, or those of them that were named.
func (a streamsApplication) deleteOwnTopics() error {
	own, out := a.ownTopics(), a.f.stdout
	switch named := listed(a.set, "internal-topics"); {
	case named != nil:
		for _, topic := range named {
			if !slices.Contains(own, topic) {
				return &badArgument{fmt.Sprintf("Invalid topic specified in the --internal-topics option: %s is none of the application's own topics, which --dry-run without the option shows", topic)}
			}
		}
		own = named
		fmt.Fprintf(out, "Deleting specified internal topics %s\n", javaList(own))
	case compat39():
		fmt.Fprintf(out, "Deleting inferred internal topics %s\n", javaList(own))
	default:
		fmt.Fprintf(out, "Deleting all internal/auto-created topics for application %s\n", a.id)
		if a.dryRun && own != nil {
			fmt.Fprintf(out, "Topic: %s\n", strings.Join(own, "\nTopic: "))
		}
	}
	if !a.dryRun {
		failed, err := a.cluster.DeleteEachTopic(a.ctx, own)
		if err != nil {
			return err
		}
		for _, topic := range sortedKeys(failed) {
			fmt.Fprintf(a.f.stderr, "ERROR: deleting topic %s\n%s", topic, stackTrace(failed[topic]))
		}
		if len(failed) > 0 {
			return &thrown{"java.lang.RuntimeException", "Encountered an error deleting one or more topics"}
		}
	}
	fmt.Fprintln(out, "Done.")
	return nil
}
