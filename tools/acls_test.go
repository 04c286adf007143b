package tools

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/zkstate/zktest"
)

func runACLTool(answers string, args ...string) ran {
	return runCommand(func(args []string, out, errs *bytes.Buffer) int {
		return ACLs(args, strings.NewReader(answers), out, errs)
	}, args...)
}

func TestACLCallsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--list", `Missing required argument "[authorizer-properties]"`},
		{"--bootstrap-server b --authorizer x --list", "Only one of --bootstrap-server or --authorizer must be specified"},
		{"--bootstrap-server b --authorizer-properties a=b --list", "The --authorizer-properties option can only be used with --authorizer option"},
		{"--authorizer-properties a=b --command-config f --list", "The --command-config option can only be used with --bootstrap-server option"},
		{"--bootstrap-server b", "Command must include exactly one action: --list, --add, --remove. "},
		{"--bootstrap-server b --add --list", "Command must include exactly one action: --list, --add, --remove. "},
		{"--bootstrap-server b --list --producer", `Option "[list]" can't be used with option "[producer]"`},
		{"--bootstrap-server b --add --producer --operation Read --topic t", `Option "[producer]" can't be used with option "[operation]"`},
		{"--bootstrap-server b --add --principal User:a --topic t", "The --principal option is only available if --list is set"},
		{"--bootstrap-server b --add --producer --allow-principal User:a", "With --producer you must specify a --topic"},
		{"--bootstrap-server b --add --idempotent --allow-principal User:a", "The --idempotent option is only available if --producer is set"},
		{"--bootstrap-server b --add --consumer --topic t --allow-principal User:a", "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option should be specified."},
		{"--bootstrap-server b --add --allow-principal User:a", "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or --delegation-token <Delegation Token ID>"},
		{"--bootstrap-server b --add --topic t", "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."},
		{"--bootstrap-server b --add --topic t --resource-pattern-type match --allow-principal User:a", "A '--resource-pattern-type' value of 'MATCH' is not valid when adding acls."},
		{"--bootstrap-server b --add --group g --operation Write --allow-principal User:a", "ResourceType GROUP only supports operations Read, Describe, Delete, All"},
		{"--bootstrap-server b --list --resource-pattern-type odd", "Unknown resource-pattern-type: odd"},
	} {
		got := runACLTool("", strings.Fields(c.args)...)
		assert.Equal(t, 1, got.code, c.args)
		assert.Equal(t, c.want, firstLine(got.stderr), c.args)
	}
}

// The lines are those of Kafka's tool, as the fixtures show them.
func TestACLsAreAddedListedAndRemovedInZooKeeper(t *testing.T) {
	t.Setenv("BARNABAS_COMPAT", "3.9.1")
	zk := zktest.Embedded(t)
	run := func(answers string, args ...string) string {
		got := runACLTool(answers, append([]string{"--authorizer-properties", "zookeeper.connect=" + zk.Addr()}, args...)...)
		require.Zero(t, got.code, got.stdout+got.stderr)
		return got.stdout
	}
	orders := "resource `ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`: \n " +
		"\t(principal=User:alice, host=*, operation=CREATE, permissionType=ALLOW)\n" +
		"\t(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)\n" +
		"\t(principal=User:alice, host=*, operation=DESCRIBE, permissionType=ALLOW) \n\n"
	assert.Equal(t, "Adding ACLs for "+orders, run("", "--add", "--allow-principal", "User:alice", "--producer", "--topic", "orders"))
	pay := "resource `ResourcePattern(resourceType=TOPIC, name=pay, patternType=PREFIXED)`: \n " +
		"\t(principal=User:bob, host=*, operation=DESCRIBE, permissionType=ALLOW)\n" +
		"\t(principal=User:bob, host=*, operation=READ, permissionType=ALLOW) \n\n"
	group := "resource `ResourcePattern(resourceType=GROUP, name=g, patternType=PREFIXED)`: \n " +
		"\t(principal=User:bob, host=*, operation=READ, permissionType=ALLOW) \n\n"
	assert.Equal(t, "Adding ACLs for "+pay+"Adding ACLs for "+group,
		run("", "--add", "--allow-principal", "User:bob", "--consumer", "--topic", "pay", "--group", "g", "--resource-pattern-type", "prefixed"))
	cluster := "resource `ResourcePattern(resourceType=CLUSTER, name=kafka-cluster, patternType=LITERAL)`: \n " +
		"\t(principal=User:bob, host=h, operation=ALTER_CONFIGS, permissionType=DENY) \n\n"
	assert.Equal(t, "Adding ACLs for "+cluster, run("", "--add", "--deny-principal", "User:bob", "--deny-host", "h", "--cluster", "--operation", "AlterConfigs"))

	assert.Equal(t, "Current ACLs for "+orders+"Current ACLs for "+pay+"Current ACLs for "+group+"Current ACLs for "+cluster, run("", "--list"))
	assert.Equal(t, "Current ACLs for "+pay, run("", "--list", "--topic", "payments", "--resource-pattern-type", "match"))
	assert.Equal(t, "ACLs for principal `User:alice`\nCurrent ACLs for "+orders, run("", "--list", "--principal", "User:alice"))

	question := "Are you sure you want to delete all ACLs for resource filter `ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`? (y/n)\n"
	assert.Equal(t, question, run("n\n", "--remove", "--topic", "orders"))
	assert.Contains(t, run("", "--list"), orders)
	assert.Equal(t, question, run("Y\n", "--remove", "--topic", "orders"))
	assert.Empty(t, run("", "--remove", "--topic", "pay", "--operation", "Read", "--allow-principal", "User:bob", "--resource-pattern-type", "prefixed", "--force"))
	assert.Equal(t, strings.Replace("Current ACLs for "+pay, "\n\t(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)", "", 1), run("", "--list", "--topic", "pay", "--resource-pattern-type", "any"))
	assert.NotContains(t, run("", "--list"), orders)
}

func TestTheOlderReleaseShowsWhatIsThereAfterAChange(t *testing.T) {
	zk := zktest.Embedded(t)
	run := func(args ...string) string {
		got := runACLTool("", append([]string{"--authorizer-properties", "zookeeper.connect=" + zk.Addr(), "--topic", "orders"}, args...)...)
		require.Zero(t, got.code, got.stdout+got.stderr)
		return got.stdout
	}
	const orders = "resource `ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`: \n "
	alice, bob := "\t(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)", "\t(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)"
	assert.Equal(t, "Adding ACLs for "+orders+alice+" \n\nCurrent ACLs for "+orders+alice+" \n\n", run("--add", "--allow-principal", "User:alice", "--operation", "Read"))
	assert.Equal(t, "Adding ACLs for "+orders+bob+" \n\nCurrent ACLs for "+orders+alice+"\n"+bob+" \n\n", run("--add", "--allow-principal", "User:bob", "--operation", "Read"))
	assert.Equal(t, "Current ACLs for "+orders+bob+" \n\n", run("--remove", "--allow-principal", "User:alice", "--operation", "Read", "--force"))
	assert.Empty(t, run("--remove", "--force"))
}

func TestWhatTheAuthorizersPropertiesLackIsSaid(t *testing.T) {
	for args, want := range map[string]string{
		"--authorizer-properties zookeeper --list":                                              "Invalid command line properties: zookeeper",
		"--authorizer-properties a=b --list":                                                    "--authorizer-properties needs zookeeper.connect=host:port",
		"--authorizer-properties zookeeper.connect=b --authorizer my.Own --list":                "there is no authorizer my.Own here",
		"--authorizer-properties zookeeper.connect=b --zk-tls-config-file /is/not/there --list": "zk-tls-config-file: ",
	} {
		got := runACLTool("", strings.Fields(args)...)
		assert.Equal(t, 1, got.code, args)
		assert.Contains(t, got.stdout, "Error while executing ACL command: "+want, args)
	}
	got := runACLTool("", "--bootstrap-server", "b", "--add", "--topic", "t", "--allow-principal", "alice")
	assert.Equal(t, 1, got.code)
	const reason = "expected a string in format principalType:principalName but got alice\n"
	assert.Equal(t, "Error while executing ACL command: "+reason+"java.lang.IllegalArgumentException: "+reason+"\n", got.stdout)
}
