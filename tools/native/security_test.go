package native

import (
	"bufio"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/admin/cluster"
	"barnabas/broker/acl"
)

func binding(resource kmsg.ACLResourceType, name string, kind kmsg.ACLResourcePatternType, principal, host string, op kmsg.ACLOperation, permission kmsg.ACLPermissionType) acl.Binding {
	return acl.Binding{Pattern: acl.Pattern{Resource: resource, Name: name, Type: kind}, Entry: acl.Entry{Principal: principal, Host: host, Operation: op, Permission: permission}}
}

var (
	reads   = binding(kmsg.ACLResourceTypeTopic, "orders", kmsg.ACLResourcePatternTypeLiteral, "User:alice", "*", kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow)
	writes  = binding(kmsg.ACLResourceTypeTopic, "orders", kmsg.ACLResourcePatternTypeLiteral, "User:alice", "*", kmsg.ACLOperationWrite, kmsg.ACLPermissionTypeAllow)
	denied  = binding(kmsg.ACLResourceTypeGroup, "it's", kmsg.ACLResourcePatternTypePrefixed, "User:*", "10.0.0.7", kmsg.ACLOperationAll, kmsg.ACLPermissionTypeDeny)
	configs = binding(kmsg.ACLResourceTypeCluster, "kafka-cluster", kmsg.ACLResourcePatternTypeLiteral, "User:CN=a b", "*", kmsg.ACLOperationAlterConfigs, kmsg.ACLPermissionTypeAllow)
)

func TestAccessListsAreShownInOrderAndOnce(t *testing.T) {
	d := aclsOf([]acl.Binding{configs, writes, denied, reads, writes})
	var out strings.Builder
	d.show(&out)
	assert.Equal(t, "RESOURCE               PATTERN   PRINCIPAL    HOST      PERMISSION  OPERATION\n"+
		"topic:orders           literal   User:alice   *         allow       read\n"+
		"topic:orders           literal   User:alice   *         allow       write\n"+
		"group:it's             prefixed  User:*       10.0.0.7  deny        all\n"+
		"cluster:kafka-cluster  literal   User:CN=a b  *         allow       alter-configs\n", out.String())
}

func TestExportedAccessListsAreWhatAShellTakesForThem(t *testing.T) {
	lines := aclCommands("h:1", "admin.properties", []acl.Binding{reads, writes, denied, configs})
	assert.Equal(t, []string{
		"kafka-acls.sh --bootstrap-server h:1 --command-config admin.properties --add --allow-principal User:alice --allow-host '*' --operation Read --operation Write --topic orders --resource-pattern-type literal",
		`kafka-acls.sh --bootstrap-server h:1 --command-config admin.properties --add --deny-principal 'User:*' --deny-host 10.0.0.7 --operation All --group 'it'\''s' --resource-pattern-type prefixed`,
		"kafka-acls.sh --bootstrap-server h:1 --command-config admin.properties --add --allow-principal 'User:CN=a b' --allow-host '*' --operation AlterConfigs --cluster",
	}, lines)
	said, err := exec.Command("sh", "-c", "printf '%s|' "+strings.Join(strings.Fields(lines[1])[9:], " ")).Output()
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.7|--operation|All|--group|it's|--resource-pattern-type|prefixed|", string(said))
}

func TestADecisionSaysWhatItRestsOn(t *testing.T) {
	who := acl.Subject{Principal: acl.Principal{Type: "User", Name: "alice"}, Host: "*"}
	show := func(d *aclAnswer) string {
		d.Operation, d.ResourceType, d.Resource = "read", "topic", "orders"
		var out strings.Builder
		d.show(&out)
		return out.String()
	}
	assert.Equal(t, "ALLOWED: User:alice may read topic:orders from *\n    allow read to User:alice from *, on topic:orders (literal)\n",
		show(answerOf(cluster.ACLPolicy{}, who, acl.Decision{Allowed: true, Reason: acl.ByEntry, By: reads})), "what is not known could not change it")
	assert.Equal(t, "DENIED: User:alice may not read topic:orders from *\n    no entry of the lists that concern it allows it\n    brokers do not tell super.users\n",
		show(answerOf(cluster.ACLPolicy{}, who, acl.Decision{Reason: acl.NoEntry})))
	assert.Equal(t, []string{"super.users", "allow.everyone.if.no.acl.found"}, answerOf(cluster.ACLPolicy{}, who, acl.Decision{Reason: acl.Unlisted}).NotKnown)
	assert.Empty(t, answerOf(cluster.ACLPolicy{SuperUsersKnown: true, UnlistedKnown: true}, who, acl.Decision{Reason: acl.Unlisted}).NotKnown)
}

func TestQuotasNameWhomTheyAreFor(t *testing.T) {
	alice, app := "alice", "app"
	d := quotasOf([]admin.QuotaDescription{
		{Entity: admin.QuotaEntity{{Type: admin.IPPart}}, Values: []admin.QuotaValue{{Key: "connection_creation_rate", Value: 20}}},
		{Entity: admin.QuotaEntity{{Type: admin.UserPart, Name: &alice}, {Type: admin.ClientIDPart, Name: &app}}, Values: []admin.QuotaValue{{Key: "request_percentage", Value: 12.5}, {Key: "producer_byte_rate", Value: 1048576}}},
		{Entity: admin.QuotaEntity{{Type: admin.UserPart, Name: &alice}}},
	})
	var out strings.Builder
	d.show(&out)
	assert.Equal(t, "USER   CLIENT  IP       QUOTA                     VALUE\n-      -       default  connection_creation_rate  20 /s\nalice  app     -        producer_byte_rate        1048576 (1.0 MB/s)\nalice  app     -        request_percentage        12.5 %\n", out.String())
	assert.Equal(t, []string{"ip"}, d.Quotas[0].Defaults)
	for text, want := range map[string]float64{"10MB/s": 1e7, "1MiB": 1 << 20, "2.5": 2.5} {
		got, err := quotaValue("consumer_byte_rate", text)
		require.NoError(t, err)
		assert.InDelta(t, want, got, 0, text)
	}
	got, err := quotaValue("request_percentage", "50%")
	require.NoError(t, err)
	assert.InDelta(t, 50, got, 0)
}

func TestAPasswordIsOneLine(t *testing.T) {
	for input, want := range map[string]string{"secret\nrest\n": "secret", "with space \r\n": "with space ", "no end": "no end"} {
		got, err := oneLine(bufio.NewReader(strings.NewReader(input)))
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := oneLine(bufio.NewReader(strings.NewReader("\n")))
	assert.EqualError(t, err, "there is no password on standard input")
}
