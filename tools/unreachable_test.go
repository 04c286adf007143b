package tools

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestABrokerThatCannotBeReachedIsWarnedOf(t *testing.T) {
	var errs bytes.Buffer
	u := newUnreachable(face{stderr: &errs})
	refused := &net.OpError{Op: "dial", Err: errors.New("connect: connection refused")}
	for range 3 {
		u.OnBrokerConnect(kgo.BrokerMetadata{NodeID: -5, Host: "a", Port: 9092}, 0, nil, refused)
	}
	u.OnBrokerConnect(kgo.BrokerMetadata{NodeID: 2, Host: "b", Port: 9092}, 0, nil, nil)
	assert.Equal(t, 1, strings.Count(errs.String(), "\n"), "once in a while is enough")
	assert.Contains(t, errs.String(), " WARN Connection to node -1 (a:9092) could not be established. Node may not be available: connect: connection refused (org.apache.kafka.clients.NetworkClient)\n")
	u.OnBrokerConnect(kgo.BrokerMetadata{NodeID: 2, Host: "b", Port: 9092}, 0, nil, refused)
	u.OnClientClosed(nil)
	u.OnBrokerConnect(kgo.BrokerMetadata{NodeID: 3, Host: "c", Port: 9092}, 0, nil, refused)
	assert.NotContains(t, errs.String(), "c:9092", "nobody is there any more to be warned")
	assert.Contains(t, errs.String(), "Connection to node 2 (b:9092) could not be established. Node may not be available: connect: connection refused. This is the address that the broker advertises")
}
