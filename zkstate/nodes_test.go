package zkstate_test

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "barnabas/zkstate"
)

// reencode decodes a node by its path and encodes it again.
type reencode func(path string, data []byte) ([]byte, error)

func codec[T any](decode func([]byte) (T, error), encode func(T) []byte) reencode {
	return func(_ string, data []byte) ([]byte, error) {
		v, err := decode(data)
		if err != nil {
			return nil, err
		}
		return encode(v), nil
	}
}

func entityConfig(_ string, data []byte) ([]byte, error) {
	c, err := DecodeEntityConfig(data)
	return c.Encode(KeyOrder(data)...), err
}

func aclCodec(dialect ACLDialect) reencode {
	return codec(DecodeACL, func(es []ACLEntry) []byte { return EncodeACL(es, dialect) })
}

// families says which codec a path belongs to; the first match counts.
func families(acl ACLDialect) []struct {
	path *regexp.Regexp
	reencode
} {
	match := func(p string) *regexp.Regexp { return regexp.MustCompile("^" + p + "$") }
	return []struct {
		path *regexp.Regexp
		reencode
	}{
		{match("/brokers/ids/[0-9]+"), codec(func(b []byte) (Broker, error) { return DecodeBroker(1, b) }, Broker.Encode)},
		{match("/brokers/topics/[^/]+"), codec(DecodeTopicAssignment, TopicAssignment.Encode)},
		{match("/brokers/topics/[^/]+/partitions/[0-9]+/state"), codec(DecodePartitionState, PartitionState.Encode)},
		{match("/cluster/id"), codec(DecodeClusterID, EncodeClusterID)},
		{match("/config/changes/config_change_[0-9]{10}"), codec(DecodeConfigChange, ConfigChange.Encode)},
		{match("/config/(topics|brokers|clients|users|ips)/.+"), entityConfig},
		{match("/controller"), codec(DecodeController, Controller.Encode)},
		{match("/controller_epoch"), codec(DecodeControllerEpoch, EncodeControllerEpoch)},
		{match("/feature"), codec(DecodeFeatures, Features.Encode)},
		{match("/latest_producer_id_block"), codec(DecodeProducerIDBlock, ProducerIDBlock.Encode)},
		{match("/kafka-acl(-extended/prefixed)?/[A-Z][A-Za-z]+/.+"), aclCodec(acl)},
		{match("/kafka-acl-changes/acl_changes_[0-9]{10}"), codec(DecodeACLChange, Resource.EncodeChange)},
		{match("/kafka-acl-extended-changes/acl_changes_[0-9]{10}"), codec(DecodeExtendedACLChange, Resource.EncodeChange)},
		{match("/isr_change_notification/isr_change_[0-9]{10}"), codec(DecodeISRChange, EncodeISRChange)},
		{match("/log_dir_event_notification/log_dir_event_[0-9]{10}"), codec(DecodeLogDirEvent, EncodeLogDirEvent)},
		{match("/admin/reassign_partitions"), codec(DecodeReassignments, EncodeReassignments)},
		{match("/admin/preferred_replica_election"), codec(DecodePreferredReplicaElection, EncodePreferredReplicaElection)},
		{match("/delegation_token/tokens/.+"), codec(DecodeToken, Token.Encode)},
		{match("/migration"), codec(DecodeMigration, Migration.Encode)},
		{match("/consumers/.+/offsets/.+"), codec(DecodeConsumerOffset, EncodeConsumerOffset)},
	}
}

func lines(t testing.TB, file string) [][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	var out [][]string
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		out = append(out, strings.Split(s.Text(), "\t"))
	}
	require.NotEmpty(t, out)
	return out
}

// The trees were dumped from clusters of that version at each step of a long scenario.
func TestEveryNodeOfARealTreeIsReadAndWrittenBackByteForByte(t *testing.T) {
	for file, dialect := range map[string]ACLDialect{"kafka-2.8.2-trees.tsv": ACLBefore3, "kafka-3.9.1-trees.tsv": ACLSince3} {
		t.Run(file, func(t *testing.T) {
			seen := 0
			for _, l := range lines(t, file) {
				path, data := l[0], l[2]
				if data == "null" {
					continue
				}
				again := ""
				for _, f := range families(dialect) {
					if f.path.MatchString(path) {
						b, err := f.reencode(path, []byte(data))
						require.NoError(t, err, "%s %s", path, data)
						again = string(b)
						break
					}
				}
				assert.Equal(t, data, again, path)
				seen++
			}
			assert.Greater(t, seen, 100)
		})
	}
}

// Kafka 3.9.1's own encoders were called with these values; the first column says which and for what.
func TestNodesAreTheBytesThatKafkasOwnEncodersWrite(t *testing.T) {
	paths := map[string]string{"config": "/config/topics/t", "topic": "/brokers/topics/t", "broker": "/brokers/ids/7",
		"state": "/brokers/topics/t/partitions/0/state", "isr": "/isr_change_notification/isr_change_0000000000",
		"logdir": "/log_dir_event_notification/log_dir_event_0000000000", "preferred": "/admin/preferred_replica_election",
		"reassign": "/admin/reassign_partitions", "change": "/config/changes/config_change_0000000000", "controller": "/controller",
		"pid": "/latest_producer_id_block", "migration": "/migration", "feature": "/feature", "token": "/delegation_token/tokens/t",
		"acl": "/kafka-acl/Topic/t", "extended": "/kafka-acl-extended-changes/acl_changes_0000000000"}
	for _, l := range lines(t, "kafka-3.9.1-encoders.tsv") {
		kind, _, _ := strings.Cut(l[0], " ")
		path, ok := paths[kind]
		require.True(t, ok, kind)
		for _, f := range families(ACLSince3) {
			if f.path.MatchString(path) {
				b, err := f.reencode(path, []byte(l[1]))
				require.NoError(t, err, l[0])
				assert.Equal(t, l[1], string(b), l[0])
				break
			}
		}
	}
}
