package native

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/urfave/cli/v2"
	"go.uber.org/goleak"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run is the program with the native commands alone.
func run(args ...string) (code Exit, stdout, stderr string) {
	var out, errs bytes.Buffer
	app := &cli.App{Name: "barnabas", HideHelpCommand: true, UseShortOptionHandling: true, Writer: &out, ErrWriter: &errs, ExitErrHandler: func(*cli.Context, error) {}}
	app.Commands = append(Commands(), CompleteCommand(), &cli.Command{Name: "broker", Subcommands: BrokerCommands()})
	err := app.Run(Arrange(append([]string{"barnabas"}, args...), app.Commands))
	if err != nil && !errors.As(err, &code) {
		return -1, out.String(), err.Error()
	}
	return code, out.String(), errs.String()
}

func TestOptionsMayFollowArguments(t *testing.T) {
	commands := append(Commands(), &cli.Command{Name: "kafka-topics", SkipFlagParsing: true}, &cli.Command{Name: "broker", Subcommands: BrokerCommands()})
	for given, want := range map[string]string{
		"topic describe orders -o json payments":        "topic describe -o=json -- orders payments",
		"group reset g --shift-by -5 --topic t:0":       "group reset --shift-by=-5 --topic=t:0 -- g",
		"topic create t --if-not-exists u":              "topic create --if-not-exists -- t u",
		"topic create --config=a=b t":                   "topic create --config=a=b -- t",
		"topic describe -- --odd":                       "topic describe -- --odd",
		"health --watch":                                "health --watch=2s",
		"health --watch 500ms -o yaml":                  "health --watch=500ms -o=yaml",
		"group describe --watch g":                      "group describe --watch=2s -- g",
		"topic":                                         "topic",
		"topic -o json list":                            "topic -o json list",
		"kafka-topics --describe --topic t":             "kafka-topics --describe --topic t",
		"broker server.properties --override a=b":       "broker server.properties --override a=b",
		"broker list -o json":                           "broker list -o=json",
		"topic list --bootstrap-server":                 "topic list --bootstrap-server",
		"nonsense --x y":                                "nonsense --x y",
		"topic delete t --dry-run --bootstrap-server h": "topic delete --dry-run --bootstrap-server=h -- t",
	} {
		got := Arrange(append([]string{"barnabas"}, strings.Fields(given)...), commands)
		assert.Equal(t, "barnabas "+want, strings.Join(got, " "), given)
	}
}

func TestWrongCallsEndWithTwoAndSayWhy(t *testing.T) {
	for call, want := range map[string]string{
		"topic":                         "one of these has to follow: list, describe, create, alter, rf, delete",
		"topic lst":                     `"lst" is none of list, describe, create, alter, rf, delete (did you mean list?)`,
		"topic list --frob":             "flag provided but not defined: -frob",
		"topic list extra":              "takes no arguments",
		"topic list -o xml":             "-o xml is none of table, json, yaml",
		"topic list --match (":          "--match: error parsing regexp",
		"topic describe":                "takes the arguments TOPIC...",
		"topic create t --partitions 0": "--partitions 0 is not between 1 and 2147483647",
		"topic create t --replication-factor 40000":         "--replication-factor 40000 is not between 1 and 32767",
		"topic create t --config novalue":                   "novalue is not of the form NAME=VALUE",
		"topic alter t":                                     "one of --config, --delete-config, --partitions and --replication-factor has to be given",
		"topic alter t u --partitions 3":                    "takes the arguments TOPIC",
		"group list --sort age":                             "--sort age is neither name nor lag",
		"group reset g --topic t":                           "one of --to-earliest, --to-latest,",
		"group reset g --topic t --to-latest --to-earliest": "one of --to-earliest, --to-latest,",
		"group reset g --to-latest":                         "one of --topic, --all-topics and --from-file has to be given",
		"group reset g --to-latest --all-topics --topic t":  "one of --topic, --all-topics and --from-file has to be given",
		"group reset g --topic t --by-duration 1h":          "--by-duration: Text cannot be parsed to a Duration",
		"group reset g --topic t --to-datetime soon":        "--to-datetime: ",
		"disk --by colour":                                  "--by colour is none of broker, dir, topic, partition",
		"disk --sort age":                                   "--sort age is neither size nor name",
		"health --watch=soon":                               "invalid value",
		"plan":                                              "one of these has to follow: drain, replace, fill, rf, racks, spread, leaders, bytes",
		"plan drain":                                        "takes the arguments BROKER...",
		"plan replace 1":                                    "takes the arguments OLD NEW",
		"plan racks --match (":                              "--match: error parsing regexp",
		"topic rf t 0":                                      `the replication factor "0" is not a number from 1 to 32767`,
		"reassign cancel":                                   "either FILE or --all has to be given",
		"reassign cancel f --all":                           "either FILE or --all has to be given",
		"elect":                                             "either topics or partitions, or --all, have to be given",
		"topic delete t u":                                  "deleting t, u cannot be taken back: --yes does it without asking, --dry-run shows it",
		"group delete g":                                    "deleting g cannot be taken back: --yes",
		"elect t --unclean":                                 "losing records by an unclean election cannot be taken back: --yes",
		"config get topic":                                  "takes the arguments KIND NAME [SETTING...]",
		"config get group g":                                "group is none of topic NAME, broker ID",
		"config set topic t x":                              "x is not of the form NAME=VALUE",
		"consume t --tail 3 --from newest":                  "--tail goes with neither --from, --since nor --follow",
		"consume t --grep-key (":                            "--grep-key: error parsing regexp",
		"consume t --header x":                              "--header x is not of the form NAME=VALUE",
		"consume t -f %q":                                   "-f: %q is none of",
		"consume t -o xml":                                  "-o xml is none of table, json, json-rows, yaml",
		"produce t --input csv":                             "--input csv is neither lines nor json-rows",
		"produce t --partition 4294967296":                  "--partition is a number from 0 on",
		"produce t --keep-partition":                        "--keep-partition goes with --input json-rows",
		"produce t --header =v":                             "--header =v is not of the form NAME=VALUE",
		"acl add User:a":                                    "takes the arguments PRINCIPAL RESOURCE...",
		"acl add alice topic:t --op read":                   "the principal alice is not of the form TYPE:NAME",
		"acl add User:a topic:t":                            "either --op, or --producer and --consumer, have to be given",
		"acl add User:a topic:t --op read --producer":       "either --op, or --producer and --consumer, have to be given",
		"acl add User:a topic:t --consumer --deny":          "--deny goes with --op",
		"acl add User:a topic:t --consumer --idempotent":    "--idempotent goes with --producer",
		"acl add User:a group:g --producer":                 "nothing is needed on a group",
		"acl add User:a group:g --op write":                 "a group has no operation write; it has all, read, describe, delete",
		"acl add User:a topic --op read":                    "topic names no topic",
		"acl add User:a queue:q --op read":                  "queue:q is none of topic:NAME, group:NAME, cluster",
		"acl list --permission maybe":                       "--permission maybe is neither allow nor deny",
		"acl list --op sing":                                `"sing" is no operation`,
		"acl remove any topic:t":                            "taking access lists away from topic:t cannot be taken back: --yes",
		"acl check User:a any topic:t":                      `"any" is no operation`,
		"acl check User:a read cluster:other":               "the cluster's name is kafka-cluster",
		"quota set producer_byte_rate=1":                    "whom it is for has to be given",
		"quota set producer_byte_rate=fast --user a":        `"fast" is not a rate such as 80MB/s`,
		"quota set request_percentage=1k --user a":          `request_percentage: "1k" is not a number`,
		"quota set x=1 --user a --user-default":             "either --user or --user-default can be given",
		"quota set x=1 --user a --ip 1.2.3.4":               "an address goes with neither a user nor a client",
		"quota set x=1 --client=":                           "--client has no name; --client-default is all",
		"quota unset --user a":                              "either names of quotas or --all have to be given",
		"user add a --mechanism MD5":                        "--mechanism MD5 is none of [SCRAM-SHA-256 SCRAM-SHA-512]",
		"user add a --iterations 10":                        "--iterations 10 is not between 4096 and 16384",
		"user remove a":                                     "taking credentials of a away cannot be taken back: --yes",
		"top --by colour":                                   "--by colour is none of topic, broker, group",
		"top --over 0s":                                     "--over has to be longer than nothing",
		"zk":                                                "one of these has to follow: get, ls, tree, stat",
		"zk get nope":                                       "the path nope does not begin with /",
		"zk tree --max 0":                                   "--max has to be at least 1",
		"log verify":                                        "takes the arguments DIR...",
		"completion tcsh":                                   "one of these has to follow: bash, zsh, fish",
	} {
		code, stdout, stderr := run(strings.Fields(call)...)
		assert.Equal(t, WrongUsage, code, call)
		assert.Empty(t, stdout, call)
		assert.Contains(t, stderr, want, call)
		assert.Contains(t, stderr, "--help tells more.", call)
	}
}

func TestWhoReadsJSONReadsOfWrongCallsToo(t *testing.T) {
	code, stdout, stderr := run("topic", "create", "t", "--partitions", "0", "-o", "json")
	assert.Equal(t, WrongUsage, code)
	assert.Empty(t, stdout)
	assert.JSONEq(t, `{"version":1,"error":"--partitions 0 is not between 1 and 2147483647","exit_code":2}`, stderr)
}

func TestNamesFromStrangersDoNotSteerATerminal(t *testing.T) {
	var out strings.Builder
	columns(&out, [][]string{{"GROUP", "STATE"}, {"a\x1b[2Jb\tc\r\nd\x7f\u009b", "Empty"}, {"größe", "Dead"}})
	assert.Equal(t, "GROUP          STATE\na␛[2Jb␉c␍␊d␡\uFFFD  Empty\ngröße          Dead\n", out.String())
}

func TestAnUnreachableClusterEndsWithFour(t *testing.T) {
	for _, call := range []string{"topic list", "topic describe t", "topic create t", "topic alter t --partitions 2", "topic delete t --yes", "group list", "group describe g", "group reset g --topic t --to-latest", "group delete g --yes",
		"disk", "health", "doctor", "broker list", "broker drain 1", "plan drain 1", "plan rf 2 --topic t", "reassign list", "reassign watch", "reassign throttle off", "topic rf t 2", "config get topic t", "config set topic t a=b", "config diff broker 1", "config get user u",
		"elect --all", "consume t", "produce t", "acl list", "acl add User:a topic:t --op read", "acl remove any topic:t --yes", "acl check User:a read topic:t", "acl export", "quota list", "quota set x=1 --user a", "user list", "user add a --dry-run",
		"user remove a --yes", "top"} {
		code, stdout, stderr := run(append(strings.Fields(call), "--bootstrap-server", "127.0.0.1:1")...)
		assert.Equal(t, Unreachable, code, call)
		assert.Empty(t, stdout, call)
		assert.Contains(t, stderr, "no answer from the brokers at 127.0.0.1:1", call)
	}
	_, _, stderr := run("health", "-o", "json", "--bootstrap-server", "127.0.0.1:1")
	assert.Regexp(t, `^\{"version":1,"error":"no answer from the brokers at 127.0.0.1:1: .*connection refused","exit_code":4\}\n$`, stderr)
}

func TestAClientFileThatCannotBeReadFails(t *testing.T) {
	code, _, stderr := run("topic", "list", "--command-config", "/no/such/file")
	assert.Equal(t, Failed, code)
	assert.Contains(t, stderr, "/no/such/file")
}

func TestEveryErrorHasItsExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Exit
	}{
		{nil, 0}, {errors.New("x"), Failed}, {cluster.Answered(kerr.TopicAlreadyExists.Code, nil), Failed}, {wrongUsage("x"), WrongUsage}, {&cluster.ImpossibleResetError{Reason: "x"}, WrongUsage},
		{&cluster.NotFoundError{Kind: "topic", Name: "t"}, NotFound}, {kerr.UnknownTopicOrPartition, NotFound}, {kerr.GroupIDNotFound, NotFound}, {context.DeadlineExceeded, Unreachable}, {io.EOF, Unreachable}, {Unhealthy, Unhealthy},
	} {
		assert.Equal(t, c.want, exitOf(c.err), "%v", c.err)
	}
}

func TestADeletionThatIsNotOverIsNotCalledDone(t *testing.T) {
	err := notYetDeleted(cluster.Answered(kerr.RequestTimedOut.Code, nil))
	assert.ErrorContains(t, err, "it is marked for deletion")
	assert.Equal(t, Failed, exitOf(err))
	assert.NoError(t, notYetDeleted(nil))
	assert.Equal(t, kerr.InvalidTopicException, notYetDeleted(kerr.InvalidTopicException))
}

func TestHelpNamesTheExitCodesAndTheFields(t *testing.T) {
	for _, call := range []string{"topic list", "topic describe", "topic create", "topic alter", "topic delete", "group list", "group describe", "group reset", "group delete", "disk", "health", "doctor", "broker list", "broker drain", "plan drain", "plan replace", "plan fill", "plan rf", "plan racks", "plan spread", "plan leaders", "plan bytes", "topic rf",
		"reassign run", "reassign list", "reassign watch", "reassign verify", "reassign cancel", "reassign throttle", "config get", "config set", "config unset", "config diff", "elect", "consume", "produce",
		"acl list", "acl add", "acl remove", "acl check", "acl export", "quota list", "quota set", "quota unset", "user list", "user add", "user remove", "top"} {
		assert.Contains(t, helpOf(t, call), "BARNABAS_BOOTSTRAP", call)
	}
	for _, call := range []string{"zk get", "zk ls", "zk tree", "zk stat"} {
		text := helpOf(t, call)
		assert.Contains(t, text, "BARNABAS_ZOOKEEPER", call)
		assert.NotContains(t, text, "bootstrap", call)
	}
	for _, call := range []string{"log dump", "log verify"} {
		assert.NotContains(t, helpOf(t, call), "bootstrap", call)
	}
}

func helpOf(t *testing.T, call string) string {
	t.Helper()
	code, stdout, _ := run(append(strings.Fields(call), "--help")...)
	assert.Zero(t, code, call)
	assert.Contains(t, stdout, exitCodes, call)
	assert.Contains(t, stdout, "Fields", call)
	return stdout
}

func TestTextsThatLookLikeSomethingElseStayTextsInYAML(t *testing.T) {
	var out strings.Builder
	d := &topicsDocument{documentVersion, []topicLine{{Topic: "123"}, {Topic: "true"}, {Topic: "null"}, {Topic: "a: b"}, {Topic: "1e3"}}}
	require.NoError(t, render(&out, "yaml", d, false))
	for _, want := range []string{`topic: "123"`, `topic: "true"`, `topic: "null"`, `topic: 'a: b'`, `topic: "1e3"`} {
		assert.Contains(t, out.String(), want)
	}
}

func TestDisksAreAddedUpByWhatWasAsked(t *testing.T) {
	replica := func(topic string, id int32, size int64) cluster.DirReplica {
		return cluster.DirReplica{Partition: plan.Partition{Topic: topic, ID: id}, Size: size}
	}
	moving := replica("a", 1, 5)
	moving.Future = true
	dirs := map[int32][]cluster.Dir{
		2: {{Path: "/x", Total: 100, Usable: 40, Replicas: []cluster.DirReplica{replica("a", 0, 10), replica("b", 0, 7)}}, {Path: "/y", Total: -1, Usable: -1, Err: kerr.KafkaStorageError}},
		1: {{Path: "/x", Total: 100, Usable: 40, Replicas: []cluster.DirReplica{replica("a", 0, 10), moving}}},
	}
	show := func(by, topic string) string {
		var out strings.Builder
		diskOf(dirs, by, topic).show(&out)
		return out.String()
	}
	assert.Equal(t, "BROKER  SIZE  REPLICAS\n1       15 B  2\n2       17 B  2\n", show("broker", ""))
	assert.Equal(t, "TOPIC  SIZE  REPLICAS\na      25 B  3\nb      7 B   1\n", show("topic", ""))
	assert.Equal(t, "BROKER  DIR  SIZE  REPLICAS  VOLUME  USABLE  STATE\n1       /x   15 B  2         100 B   40 B    in use\n2       /x   10 B  1         100 B   40 B    in use\n"+
		"2       /y   0 B   0         -       -       out of use: KAFKA_STORAGE_ERROR: Disk error when trying to access log file on the disk.\n", show("dir", "a"))
	assert.Equal(t, "TOPIC  PARTITION  BROKER  DIR  SIZE  OFFSET-LAG  STATE\na      0          1       /x   10 B  0           in use\na      0          2       /x   10 B  0           in use\na      1          1       /x   5 B   0           moving here\n", show("partition", "a"))
	assert.EqualValues(t, 32, diskOf(dirs, "dir", "").Total)
}

func TestAResetShowsWhatItChanges(t *testing.T) {
	p, q := plan.Partition{Topic: "t", ID: 0}, plan.Partition{Topic: "t", ID: 1}
	d := resetOf("g", true, map[plan.Partition]int64{p: 10, q: 0}, map[plan.Partition]int64{p: 25}, []cluster.Clamped{{Partition: p, Asked: 99, Set: 10}})
	var out strings.Builder
	d.show(&out)
	assert.Equal(t, "TOPIC  PARTITION  OLD  NEW  DIFFERENCE  NOTE\nt      0          25   10   -15         99 is outside of the partition\nt      1          -    0    -           -\n\nNothing was changed (--dry-run).\n", out.String())
}
