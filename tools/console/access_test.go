package console

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/admin/cluster"
	"barnabas/broker/acl"
)

func TestAccessListsQuotasAndUsersAreShown(t *testing.T) {
	f := newFake()
	alice := "alice"
	f.acls = []acl.Binding{{Pattern: acl.Pattern{Resource: kmsg.ACLResourceTypeTopic, Name: "orders", Type: kmsg.ACLResourcePatternTypePrefixed}, Entry: acl.Entry{Principal: "User:alice", Host: "*", Operation: kmsg.ACLOperationAlterConfigs, Permission: kmsg.ACLPermissionTypeDeny}}}
	f.quotas = []admin.QuotaDescription{{Entity: admin.QuotaEntity{{Type: admin.UserPart, Name: &alice}, {Type: admin.ClientIDPart}}, Values: []admin.QuotaValue{{Key: "producer_byte_rate", Value: 1048576000}}}}
	f.users = []admin.ScramDescription{{User: "<alice>", Credentials: []admin.ScramInfo{{Mechanism: admin.ScramSHA512, Iterations: 4096}}}}
	s := serve(t, f, nil)
	body := s.page("/access")
	for _, want := range []string{"orders</td><td>prefixed</td>", "User:alice", "AlterConfigs", `<b class="warn">Deny</b>`, "user alice, every other client-id", "producer_byte_rate=1048576000", "&lt;alice&gt;", "SCRAM-SHA-512 (4096 iterations)"} {
		assert.Contains(t, body, want)
	}
	body = s.page("/access?q=nobody")
	assert.NotContains(t, body, "User:alice")
	assert.Contains(t, body, "No entry is like that.")
	f.acls, f.aclFault = nil, cluster.Answered(54, nil) // SECURITY_DISABLED
	assert.Contains(t, s.page("/access"), "The brokers have no authorizer: everybody may do everything.")
}

func TestAccessIsNotForWhoHasNotSignedIn(t *testing.T) {
	s := serve(t, newFake(), nil)
	s.console.guard.local = false
	assert.Equal(t, http.StatusForbidden, s.get("/access").code)
	assert.NotContains(t, s.page("/"), `href="/access"`)
}
