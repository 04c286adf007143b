package znode

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/zkstate"
)

var example = regexp.MustCompile("(?m)^```znode\n(.*)\n(.*)\n```$")

// The examples are those of the page that describes the nodes.
func TestWhatKafkaKeepsIsTold(t *testing.T) {
	page, err := os.ReadFile("../../zkstate/FORMAT.md")
	require.NoError(t, err)
	told := map[string]bool{}
	for _, m := range example.FindAllStringSubmatch(string(page), -1) {
		r := Read(m[1], []byte(m[2]), zkstate.Stat{Version: 7, Czxid: 5})
		require.NoError(t, r.Problem, m[1])
		require.NotEmpty(t, r.Family, m[1])
		text, err := json.Marshal(r.Content)
		require.NoError(t, err)
		assert.True(t, len(text) > 2 && json.Valid(text), "%s: %s", m[1], text)
		told[r.Family] = true
	}
	assert.Greater(t, len(told), 15)
}

func content(t *testing.T, path, data string) string {
	t.Helper()
	r := Read(path, []byte(data), zkstate.Stat{Version: 7, Czxid: 5})
	require.NoError(t, r.Problem)
	text, err := json.Marshal(r.Content)
	require.NoError(t, err)
	return string(text)
}

func TestANodeSaysWhatItsFieldsMean(t *testing.T) {
	assert.JSONEq(t, `{"leader":2,"leader_epoch":4,"isr":[3,1,2],"partition_epoch":7,"controller_epoch":2,"recovering":false}`,
		content(t, "/brokers/topics/orders/partitions/1/state", `{"controller_epoch":2,"leader":2,"version":1,"leader_epoch":4,"isr":[3,1,2]}`))
	assert.JSONEq(t, `{"id":7,"version":4,"broker_epoch":5,"registered_at":"2026-12-01T09:35:11.557Z","rack":"r1","endpoints":[{"listener":"CLIENT","protocol":"SASL_SSL","host":"::1","port":9093}],"features":{}}`,
		content(t, "/brokers/ids/7", `{"listener_security_protocol_map":{"CLIENT":"SASL_SSL"},"endpoints":["CLIENT://[::1]:9093"],"rack":"r1","jmx_port":-1,"port":-1,"host":null,"version":4,"timestamp":"1796117711557"}`))
	assert.JSONEq(t, `{"topic":"old"}`, content(t, "/admin/delete_topics/old", ""))
	assert.JSONEq(t, `{"generated":7}`, content(t, "/brokers/seqid", ""))
}

func TestSecretsAreNotTold(t *testing.T) {
	told := content(t, "/config/users/alice", `{"version":1,"config":{"SCRAM-SHA-256":"salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=4096","producer_byte_rate":"10"}}`)
	assert.JSONEq(t, `{"settings":{"SCRAM-SHA-256":"iterations=4096 (hidden)","producer_byte_rate":"10"}}`, told)
	told = content(t, "/config/brokers/1", `{"version":1,"config":{"listener.name.client.ssl.key.password":"cipherAlgorithm:AES/CBC/PKCS5Padding,encryptedPassword:c2VjcmV0","log.cleaner.threads":"2"}}`)
	assert.JSONEq(t, `{"settings":{"listener.name.client.ssl.key.password":"(hidden)","log.cleaner.threads":"2"}}`, told)
}

func TestWhatIsNoneOfKafkasOrMalformedIsSaid(t *testing.T) {
	assert.Equal(t, Reading{}, Read("/zookeeper/quota", []byte("x"), zkstate.Stat{}))
	for _, path := range []string{"/brokers/topics/t", "/controller", "/brokers/ids/x", "/config/topics/t", "/kafka-acl/Topic/t", "/controller_epoch", "/admin/reassign_partitions"} {
		r := Read(path, []byte("nonsense"), zkstate.Stat{})
		assert.Error(t, r.Problem, path)
		assert.Nil(t, r.Content, path)
	}
	r := Read("/config/users/alice", nil, zkstate.Stat{})
	assert.Equal(t, Reading{Family: "configuration"}, r, "a directory on the way to a client's")
}

func FuzzRead(f *testing.F) {
	page, err := os.ReadFile("../../zkstate/FORMAT.md")
	require.NoError(f, err)
	for _, m := range example.FindAllStringSubmatch(string(page), -1) {
		f.Add(m[1], []byte(m[2]))
	}
	f.Fuzz(func(t *testing.T, path string, data []byte) {
		r := Read(path, data, zkstate.Stat{})
		if _, err := json.Marshal(r.Content); err != nil {
			t.Fatal(err)
		}
		if r.Content != nil && r.Problem != nil || r.Family == "" && r.Content != nil {
			t.Fatalf("%+v of %s", r, strings.ToValidUTF8(path, "?"))
		}
	})
}
