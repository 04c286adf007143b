package broker

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/acl"
	"barnabas/config"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

func quietLog() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return logrus.NewEntry(log)
}

func zkClient(t *testing.T, srv zktest.Server) *zkstate.Client {
	t.Helper()
	zk, err := zkstate.Connect(zkstate.Config{Servers: srv.Addr(), SessionTimeout: 10 * time.Second, ConnectTimeout: 10 * time.Second, Log: quietLog()})
	require.NoError(t, err)
	t.Cleanup(func() { zk.Close() })
	return zk
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func guarded(t *testing.T, zk *zkstate.Client, settings map[string]string) (*authorizer, error) {
	t.Helper()
	settings["authorizer.class.name"], settings["zookeeper.connect"] = "kafka.security.authorizer.AclAuthorizer", "here"
	v, err := config.New(settings)
	require.NoError(t, err)
	return newAuthorizer(within(t, time.Minute), zk, v, quietLog())
}

var (
	someTopic = kmsg.ACLResourceTypeTopic
	carol     = acl.Subject{Principal: acl.Principal{Type: "User", Name: "carol"}, Host: "10.0.0.1"}
)

func carolReads(kind kmsg.ACLResourcePatternType, name string) []acl.Binding {
	return []acl.Binding{{
		Pattern: acl.Pattern{Resource: someTopic, Name: name, Type: kind},
		Entry:   acl.Entry{Principal: "User:carol", Host: "*", Operation: kmsg.ACLOperationRead, Permission: kmsg.ACLPermissionTypeAllow},
	}}
}

func TestAnAuthorizerFollowsWhatOthersChangeAlsoOverARestartOfZooKeeper(t *testing.T) {
	srv := zktest.Embedded(t)
	mine := zkClient(t, srv)
	a, err := guarded(t, mine, map[string]string{})
	require.NoError(t, err)
	others := admin.NewACLs(zkClient(t, srv), acl.Policy{})
	require.NoError(t, others.Load(within(t, time.Minute)))

	ctx, cancel := context.WithCancel(context.Background())
	events := mine.Subscribe()
	defer events.Close()
	var following sync.WaitGroup
	following.Go(func() { a.follow(ctx, events.C()) })
	defer following.Wait()
	defer cancel()

	may := func() bool { return a.Allows(carol, kmsg.ACLOperationRead, someTopic, "orders") }
	becomes := func(want bool) {
		t.Helper()
		require.Eventually(t, func() bool { return may() == want }, time.Minute, 5*time.Millisecond)
	}
	everything := acl.Filter{Resource: kmsg.ACLResourceTypeAny, Type: kmsg.ACLResourcePatternTypeAny, Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny}
	for _, lists := range [][]acl.Binding{carolReads(kmsg.ACLResourcePatternTypeLiteral, "orders"), carolReads(kmsg.ACLResourcePatternTypePrefixed, "ord")} {
		require.False(t, may())
		require.NoError(t, others.Create(within(t, time.Minute), lists)[0])
		becomes(true)
		others.Delete(within(t, time.Minute), []acl.Filter{everything})
		becomes(false)
	}
	srv.Stop()
	srv.Start()
	require.NoError(t, others.Create(within(t, time.Minute), carolReads(kmsg.ACLResourcePatternTypeLiteral, "orders"))[0])
	becomes(true)
}

func TestSuperUsersAreReadAsKafkaReadsThem(t *testing.T) {
	zk := zkClient(t, zktest.Embedded(t))
	a, err := guarded(t, zk, map[string]string{"super.users": " User:CN=a,OU=b ;User:carol;"})
	require.NoError(t, err)
	assert.True(t, a.Allows(carol, kmsg.ACLOperationAlter, kmsg.ACLResourceTypeCluster, acl.ClusterName))
	assert.True(t, a.Allows(acl.Subject{Principal: acl.Principal{Type: "User", Name: "CN=a,OU=b"}}, kmsg.ACLOperationAlter, kmsg.ACLResourceTypeCluster, acl.ClusterName))
	assert.False(t, a.Allows(acl.Subject{Principal: acl.Principal{Type: "Group", Name: "carol"}}, kmsg.ACLOperationAlter, kmsg.ACLResourceTypeCluster, acl.ClusterName))

	_, err = guarded(t, zk, map[string]string{"super.users": "carol"})
	assert.EqualError(t, err, "super.users: expected a string in format principalType:principalName but got carol")

	open, err := guarded(t, zk, map[string]string{"allow.everyone.if.no.acl.found": "true"})
	require.NoError(t, err)
	assert.True(t, open.Allows(carol, kmsg.ACLOperationRead, someTopic, "orders"))

	v, err := config.New(map[string]string{"zookeeper.connect": "here"})
	require.NoError(t, err)
	none, err := newAuthorizer(within(t, time.Minute), zk, v, quietLog())
	require.NoError(t, err)
	assert.Nil(t, none)
}

func TestNotificationsAreReadOnceAndOldOnesRemoved(t *testing.T) {
	srv := zktest.Embedded(t)
	zk := zkClient(t, srv)
	ctx := within(t, time.Minute)
	require.NoError(t, zk.MakePersistentPaths(ctx))
	tell := func(topic string) {
		require.NoError(t, zk.NotifyConfigChange(ctx, zkstate.ConfigChange{Type: zkstate.TopicEntity, Name: topic}))
	}
	heard := func(c *changes) (topics []string) {
		news, err := c.unseen(ctx)
		require.NoError(t, err)
		for _, data := range news {
			change, err := zkstate.DecodeConfigChange(data)
			require.NoError(t, err)
			topics = append(topics, change.Name)
		}
		return topics
	}
	patient, impatient := newChanges(zk, zkstate.ConfigChangesPath), newChanges(zk, zkstate.ConfigChangesPath)
	impatient.kept = -time.Second // the server's clock may be a little ahead
	tell("a")
	tell("b")
	assert.Equal(t, []string{"a", "b"}, heard(patient))
	assert.Empty(t, heard(patient))
	tell("c")
	assert.Equal(t, []string{"c"}, heard(patient))
	assert.Equal(t, []string{"a", "b", "c"}, heard(impatient))
	left, err := zk.One(ctx, zkstate.Children(zkstate.ConfigChangesPath))
	require.NoError(t, err)
	assert.Empty(t, left.Children)
	tell("d")
	assert.Equal(t, []string{"d"}, heard(patient), "what was removed leaves no gap")
}
