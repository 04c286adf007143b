package interop

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/acl"
	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// guarded is a cluster whose every broker decides by access lists. Its clients are User:ANONYMOUS, as the brokers are to each other: what is allowed from the start is what brokers and
// this test need, topics not among it.
func startGuarded(t *testing.T, programs ...cluster.Program) *cluster.Cluster {
	zk := zktest.Embedded(t)
	client := connect(t, zk.Addr())
	defer client.Close()
	lists := admin.NewACLs(client, acl.Policy{})
	ctx := lane.Patience(t)
	require.NoError(t, lists.Load(ctx))
	var rights []acl.Binding
	for _, op := range []kmsg.ACLOperation{kmsg.ACLOperationClusterAction, kmsg.ACLOperationAlter, kmsg.ACLOperationDescribe, kmsg.ACLOperationCreate} {
		rights = append(rights, acl.Binding{
			Pattern: acl.Pattern{Resource: kmsg.ACLResourceTypeCluster, Name: acl.ClusterName, Type: kmsg.ACLResourcePatternTypeLiteral},
			Entry:   acl.Entry{Principal: "User:ANONYMOUS", Host: "*", Operation: op, Permission: kmsg.ACLPermissionTypeAllow},
		})
	}
	for _, err := range lists.Create(ctx, rights) {
		require.NoError(t, err)
	}
	return cluster.StartMixed(t, zk.Addr(), programs, map[string]string{"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "min.insync.replicas": "1"})
}

// onlyFrom is a client that knows one broker, and asks it whatever it is asked.
func onlyFrom(t *testing.T, b *cluster.Broker) func(kmsg.Request) kmsg.Response {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.RetryTimeout(patience))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return func(req kmsg.Request) kmsg.Response {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		resp, err := client.SeedBrokers()[0].Request(ctx, req)
		require.NoError(t, err)
		return resp
	}
}

// An access list that is made at a broker of either kind holds at the other at once, and so does its end; brokers of both kinds go on replicating.
func TestAccessListsHoldAtOnceInMixedClusters(t *testing.T) {
	lane.KafkaJars(t, "3.9.1")
	c := startGuarded(t, cluster.Barnabas, cluster.Kafka("3.9.1"))
	ours, theirs := onlyFrom(t, c.Brokers[0]), onlyFrom(t, c.Brokers[1])
	create := kmsg.NewPtrCreateTopicsRequest()
	create.TimeoutMillis = 30_000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "orders", 2, 2
	create.Topics = append(create.Topics, topic)
	require.Zero(t, ours(create).(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode)

	for _, way := range []struct {
		name     string
		at, seen func(kmsg.Request) kmsg.Response
		pattern  acl.Pattern
	}{
		{"made at Barnabas, by name", ours, theirs, acl.Pattern{Resource: kmsg.ACLResourceTypeTopic, Name: "orders", Type: kmsg.ACLResourcePatternTypeLiteral}},
		{"made at Kafka, by name", theirs, ours, acl.Pattern{Resource: kmsg.ACLResourceTypeTopic, Name: "orders", Type: kmsg.ACLResourcePatternTypeLiteral}},
		{"made at Barnabas, by prefix", ours, theirs, acl.Pattern{Resource: kmsg.ACLResourceTypeTopic, Name: "ord", Type: kmsg.ACLResourcePatternTypePrefixed}},
		{"made at Kafka, by prefix", theirs, ours, acl.Pattern{Resource: kmsg.ACLResourceTypeTopic, Name: "ord", Type: kmsg.ACLResourcePatternTypePrefixed}},
	} {
		t.Run(way.name, func(t *testing.T) {
			require.Equal(t, kerr.TopicAuthorizationFailed.Code, topicError(way.seen, "orders"))
			changed := time.Now()
			require.Zero(t, changeACL(way.at, way.pattern, kmsg.ACLOperationDescribe, true))
			became(t, way.seen, 0)
			t.Logf("held at the other after %s", time.Since(changed).Round(time.Millisecond))
			require.Zero(t, changeACL(way.at, way.pattern, kmsg.ACLOperationDescribe, false))
			became(t, way.seen, kerr.TopicAuthorizationFailed.Code)
		})
	}
	require.Zero(t, changeACL(theirs, acl.Pattern{Resource: kmsg.ACLResourceTypeTopic, Name: "orders", Type: kmsg.ACLResourcePatternTypeLiteral}, kmsg.ACLOperationAll, true))
	c.WaitWhole(t, "orders", 2, 2)
	t.Run("Kafka's tool", func(t *testing.T) { kafkasToolSeesWhatOursDoes(t, c) })
}

// became waits until a broker says of the topic what is wanted.
func became(t *testing.T, ask func(kmsg.Request) kmsg.Response, want int16) {
	t.Helper()
	require.Eventually(t, func() bool { return topicError(ask, "orders") == want }, patience, 10*time.Millisecond)
}

func topicError(ask func(kmsg.Request) kmsg.Response, name string) int16 {
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &name
	req.Topics = append(req.Topics, topic)
	return ask(req).(*kmsg.MetadataResponse).Topics[0].ErrorCode
}

// changeACL allows User:ANONYMOUS an operation, or takes that back.
func changeACL(ask func(kmsg.Request) kmsg.Response, on acl.Pattern, op kmsg.ACLOperation, allow bool) int16 {
	if allow {
		req := kmsg.NewPtrCreateACLsRequest()
		a := kmsg.NewCreateACLsRequestCreation()
		a.ResourceType, a.ResourceName, a.ResourcePatternType = on.Resource, on.Name, on.Type
		a.Principal, a.Host, a.Operation, a.PermissionType = "User:ANONYMOUS", "*", op, kmsg.ACLPermissionTypeAllow
		req.Creations = append(req.Creations, a)
		return ask(req).(*kmsg.CreateACLsResponse).Results[0].ErrorCode
	}
	req := kmsg.NewPtrDeleteACLsRequest()
	f := kmsg.NewDeleteACLsRequestFilter()
	f.ResourceType, f.ResourceName, f.ResourcePatternType = on.Resource, &on.Name, on.Type
	f.Operation, f.PermissionType = op, kmsg.ACLPermissionTypeAny
	req.Filters = append(req.Filters, f)
	return ask(req).(*kmsg.DeleteACLsResponse).Results[0].ErrorCode
}

// kafkasToolSeesWhatOursDoes has Kafka's kafka-acls work on Barnabas, and this project's on Kafka.
func kafkasToolSeesWhatOursDoes(t *testing.T, c *cluster.Cluster) {
	lib, java := lane.KafkaJars(t, "3.9.1"), lane.Java(t)
	t.Setenv("BARNABAS_COMPAT", "3.9.1")
	kafkas := func(args ...string) string {
		jvm := []string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", lib + "/*", "kafka.admin.AclCommand", "--bootstrap-server", c.Brokers[0].Addr}
		return runTool(t, java, append(jvm, args...)...)
	}
	ours := func(args ...string) string {
		return runTool(t, cluster.Binary(t), append([]string{"kafka-acls", "--bootstrap-server", c.Brokers[1].Addr}, args...)...)
	}
	role := []string{"--add", "--allow-principal", "User:alice", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--operation", "Read", "--topic", "pay", "--resource-pattern-type", "prefixed"}
	assert.Equal(t, toolLines(kafkas(role...)), toolLines(ours(role...)), "adding twice is adding once")
	listed := kafkas("--list")
	assert.Contains(t, listed, "(principal=User:bob, host=10.0.0.1, operation=READ, permissionType=DENY)")
	require.Eventually(t, func() bool { return slices.Equal(toolLines(listed), toolLines(ours("--list"))) }, patience, 100*time.Millisecond)
	assert.Empty(t, strings.TrimSpace(ours("--remove", "--topic", "pay", "--resource-pattern-type", "prefixed", "--force")))
	require.Eventually(t, func() bool {
		return !strings.Contains(runTool(t, cluster.Binary(t), "kafka-acls", "--bootstrap-server", c.Brokers[0].Addr, "--list"), "name=pay")
	}, patience, 100*time.Millisecond)
}

func runTool(t *testing.T, program string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "%s%s", &out, &errs)
	return out.String()
}

// toolLines are the lines of kafka-acls without their order, which is that of a hash table.
func toolLines(out string) []string {
	var lines []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}
