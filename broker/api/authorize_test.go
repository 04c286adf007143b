package api

import (
	"net"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Operators look for these lines when a client says that it is denied.
func TestADenialIsLoggedInTheWordsOfKafkasAuthorizer(t *testing.T) {
	w := newACLWorld(t, aclPlays["enforced"])
	logger, lines := test.NewNullLogger()
	w.d.audit = logrus.NewEntry(logger)
	one := kmsg.NewPtrMetadataRequest()
	one.Version = 9
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr("one")
	one.Topics = append(one.Topics, topic)
	w.askAs("alice", one)
	require.Len(t, lines.AllEntries(), 1)
	assert.Equal(t, "Principal = User:alice is Denied Operation = Describe from host = 127.0.0.1 on resource = Topic:LITERAL:one for request = Metadata", lines.LastEntry().Message)
	assert.Equal(t, logrus.InfoLevel, lines.LastEntry().Level)

	lines.Reset()
	producer := kmsg.NewPtrInitProducerIDRequest()
	producer.Version = 4
	w.askAs("alice", producer)
	require.Len(t, lines.AllEntries(), 1)
	assert.Contains(t, lines.LastEntry().Message, "Denied Operation = IdempotentWrite from host = 127.0.0.1 on resource = Cluster:LITERAL:kafka-cluster")

	lines.Reset()
	everything := kmsg.NewPtrMetadataRequest()
	everything.Version = 9
	w.askAs("alice", everything)
	assert.Empty(t, lines.AllEntries(), "nobody asked for what was left out")
}

func TestHostsAreNamedAsJavaNamesThem(t *testing.T) {
	for text, want := range map[string]string{"10.0.0.1": "10.0.0.1", "::1": "0:0:0:0:0:0:0:1", "2001:db8::f00": "2001:db8:0:0:0:0:0:f00", "::ffff:10.0.0.1": "10.0.0.1"} {
		assert.Equal(t, want, javaHost(&net.TCPAddr{IP: net.ParseIP(text), Port: 5}))
	}
	assert.Equal(t, "fe80:0:0:0:0:0:0:1%eth0", javaHost(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}))
}
