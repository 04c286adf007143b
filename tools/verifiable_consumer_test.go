package tools

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func runVerifiableConsumer(args ...string) ran {
	return runCommand(func(args []string, out, errs *bytes.Buffer) int { return VerifiableConsumer(args, nil, out, errs) }, args...)
}

func TestVerifiableConsumerCallsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--topic t --bootstrap-server b", "argument --group-id is required"},
		{"--topic t --group-id g", "one of the arguments --bootstrap-server --broker-list is required"},
		{"--topic t --group-id g --bootstrap-server b --broker-list b", "argument --broker-list: not allowed with argument --bootstrap-server"},
		{"--topic t --group-id g --bootstrap-server b --max-messages z", `argument --max-messages: could not convert 'z' to Integer (For input string: "z")`},
		{"--topic t --group-id g --bootstrap-server b --reset-policy z", "Invalid value z for configuration auto.offset.reset: String must be one of: latest, earliest, none"},
		{"--topic t --group-id g --bootstrap-server b --assignment-strategy org.example.Fair", "the assignor org.example.Fair is not known here"},
		{"--topic t --group-id g --bootstrap-server b --consumer.config /nosuch", "open /nosuch: no such file or directory"},
	} {
		got := runVerifiableConsumer(strings.Fields(c.args)...)
		assert.Equal(t, 1, got.code, c.args)
		assert.Contains(t, got.stderr, "verifiable-consumer: error: "+c.want+"\n", c.args)
		assert.Empty(t, got.stdout, c.args)
	}
	got := runVerifiableConsumer()
	assert.Zero(t, got.code, "without arguments it prints its help and is content")
	assert.Contains(t, got.stdout, "usage: verifiable-consumer [-h] --topic TOPIC")
}

func TestTheNewGroupProtocolEndsAtOnce(t *testing.T) {
	got := runVerifiableConsumer(strings.Fields("--topic t --group-id g --bootstrap-server 127.0.0.1:1 --group-protocol CONSUMER")...)
	assert.Zero(t, got.code)
	assert.Regexp(t, `^\{"timestamp":\d+,"name":"startup_complete"\}\n\{"timestamp":\d+,"name":"shutdown_complete"\}\n$`, got.stdout)
	assert.Contains(t, got.stderr, "UnsupportedVersionException: The version of API is not supported.")
}

func TestEventsHaveTheirFieldsInOrder(t *testing.T) {
	var out bytes.Buffer
	log := eventLog{out: &out}
	at, key := topicPartition{"t", 1}, "k"
	log.tell(partitionsEvent{event{1, "partitions_assigned"}, []topicPartition{}})
	log.tell(recordEvent{event{1, "record_data"}, &key, nil, at, 5})
	log.tell(consumedEvent{event{1, "records_consumed"}, 3, []consumedPartitions{{at, 2, 5, 6}}})
	log.tell(committedEvent{event{1, "offsets_committed"}, []committedOffset{{at, 7}}, "no", false})
	assert.Equal(t, `{"timestamp":1,"name":"partitions_assigned","partitions":[]}
{"timestamp":1,"name":"record_data","key":"k","value":null,"topic":"t","partition":1,"offset":5}
{"timestamp":1,"name":"records_consumed","count":3,"partitions":[{"topic":"t","partition":1,"count":2,"minOffset":5,"maxOffset":6}]}
{"timestamp":1,"name":"offsets_committed","offsets":[{"topic":"t","partition":1,"offset":7}],"error":"no","success":false}
`, out.String())
}

func TestOnlyWhatNoPollMendsEndsAConsumer(t *testing.T) {
	failed := func(topic string, err error) kgo.Fetches {
		return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: topic, Partitions: []kgo.FetchPartition{{Err: err}}}}}}
	}
	for _, err := range []error{kerr.UnknownTopicOrPartition, kerr.NotLeaderForPartition, &kgo.ErrDataLoss{}, &kgo.ErrGroupSession{Err: kerr.UnknownMemberID}, &kgo.ErrGroupSession{Err: errors.New("unable to dial")}} {
		assert.NoError(t, hopeless(failed("t", err)))
	}
	for _, err := range []error{kerr.TopicAuthorizationFailed, kerr.OffsetOutOfRange, errors.New("partition has no prior committed offset"), &kgo.ErrGroupSession{Err: kerr.FencedInstanceID}} {
		assert.Error(t, hopeless(failed("t", err)))
	}
	assert.NoError(t, hopeless(failed("", errors.New("unable to dial"))))
}
