package admin

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

// The lines are calls of Kafka 3.9.1's AdminUtils: brokers (id or id:rack), partitions, replicas, start, first
// partition, and what came out.
func TestReplicasAreAssignedAsKafkaAssignsThem(t *testing.T) {
	data, err := os.ReadFile("testdata/kafka-3.9.1-assignments.tsv")
	require.NoError(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f := strings.Split(line, "\t")
		var brokers []BrokerRack
		for _, b := range strings.Split(f[0], ",") {
			id, rack, racked := strings.Cut(b, ":")
			broker := BrokerRack{ID: int32(atoi(t, id))}
			if racked {
				broker.Rack = &rack
			}
			brokers = append(brokers, broker)
		}
		start := AssignmentStart{Index: atoi(t, f[3]), Shift: atoi(t, f[3])}
		got, err := AssignReplicas(brokers, atoi(t, f[1]), atoi(t, f[2]), atoi(t, f[4]), start)
		require.NoError(t, err, line)
		var parts []string
		for _, p := range sortedPartitions(got) {
			parts = append(parts, fmt.Sprintf("%d=%s", p, joinIDs(got[p], ",")))
		}
		require.Equal(t, f[5], strings.Join(parts, " "), line)
	}
}

func atoi(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

func TestImpossibleAssignmentsAreRefusedInKafkasWords(t *testing.T) {
	rack := "a"
	three := []BrokerRack{{ID: 1}, {ID: 2}, {ID: 3}}
	for _, c := range []struct {
		brokers              []BrokerRack
		partitions, replicas int
		code                 *kerr.Error
		message              string
	}{
		{three, 0, 1, kerr.InvalidPartitions, "Number of partitions must be larger than 0."},
		{three, -5, 9, kerr.InvalidPartitions, "Number of partitions must be larger than 0."},
		{three, 1, 0, kerr.InvalidReplicationFactor, "Replication factor must be larger than 0."},
		{three, 1, 4, kerr.InvalidReplicationFactor, "Replication factor: 4 larger than available brokers: 3."},
		{nil, 1, 1, kerr.InvalidReplicationFactor, "Replication factor: 1 larger than available brokers: 0."},
		{[]BrokerRack{{ID: 1, Rack: &rack}, {ID: 2}}, 1, 1, kerr.UnknownServerError, "Not all brokers have rack information for replica rack aware assignment."},
		{three, 1 << 31, 1, kerr.InvalidPartitions, "Number of partitions must not be larger than 250000: their assignment has to fit in one ZooKeeper node."},
	} {
		_, err := AssignReplicas(c.brokers, c.partitions, c.replicas, 0, AssignmentStart{})
		assert.ErrorIs(t, err, c.code)
		assert.EqualError(t, err, c.message)
	}
}

func TestEveryRackGetsAReplicaAndNoBrokerTwo(t *testing.T) {
	var brokers []BrokerRack
	for i := range 10 {
		rack := string(rune('a' + i%4%3)) // uneven racks
		brokers = append(brokers, BrokerRack{ID: int32(i), Rack: &rack})
	}
	for start := range 10 {
		for shift := range 10 {
			got, err := AssignReplicas(brokers, 40, 3, 0, AssignmentStart{start, shift})
			require.NoError(t, err)
			for p, replicas := range got {
				racks := map[string]bool{}
				for _, id := range replicas {
					racks[*brokers[id].Rack] = true
				}
				require.Len(t, racks, 3, "partition %d on %v", p, replicas)
				require.False(t, duplicate(replicas))
			}
		}
	}
}

func TestTopicNamesAreThoseThatKafkaAllows(t *testing.T) {
	for _, name := range []string{"a", "A.b_c-9", strings.Repeat("x", 249), "...", "-"} {
		assert.NoError(t, ValidateTopicName(name), name)
	}
	for name, message := range map[string]string{
		"":                       "Topic name is invalid: the empty string is not allowed",
		".":                      "Topic name is invalid: '.' is not allowed",
		"..":                     "Topic name is invalid: '..' is not allowed",
		"bad/name":               "Topic name is invalid: 'bad/name' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
		"a b":                    "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
		"ü":                      "Topic name is invalid: 'ü' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
		"\xff":                   "Topic name is invalid: '\xff' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
		strings.Repeat("x", 250): "Topic name is invalid: the length of '" + strings.Repeat("x", 250) + "' is longer than the max allowed length 249",
	} {
		err := ValidateTopicName(name)
		assert.ErrorIs(t, err, kerr.InvalidTopicException)
		assert.EqualError(t, err, message)
	}
	assert.True(t, collide("a.b", "a_b"))
	assert.False(t, collide("a.b", "a-b"))
}

func TestTopicIDsNeverBeginWithADash(t *testing.T) {
	seen := map[string]bool{}
	for range 2000 {
		id := newTopicID().String()
		require.NotEqual(t, byte('-'), id[0])
		require.False(t, seen[id])
		seen[id] = true
	}
}

func TestListsAreAppendedToAndSubtractedFromWithoutDoubles(t *testing.T) {
	assert.Equal(t, []string{"delete", "compact"}, editList(OpAppend, []string{"delete"}, []string{"compact", "delete"}))
	assert.Equal(t, []string{"compact"}, editList(OpSubtract, []string{"delete", "compact"}, []string{"delete", "x"}))
}

func TestAQuotaFilterMatchesNamesDefaultsAndAbsence(t *testing.T) {
	alice, app := "alice", "app"
	user, userApp, defaultUser, client := QuotaEntity{{UserPart, &alice}}, QuotaEntity{{UserPart, &alice}, {ClientIDPart, &app}},
		QuotaEntity{{UserPart, nil}}, QuotaEntity{{ClientIDPart, &app}}
	all := []QuotaEntity{user, userApp, defaultUser, client}
	for _, c := range []struct {
		name    string
		filters []QuotaFilter
		strict  bool
		want    []QuotaEntity
	}{
		{"nothing asked", nil, false, all},
		{"nothing allowed", nil, true, nil},
		{"any user", []QuotaFilter{{UserPart, MatchAny, nil}}, false, []QuotaEntity{user, userApp, defaultUser}},
		{"any user and nothing else", []QuotaFilter{{UserPart, MatchAny, nil}}, true, []QuotaEntity{user, defaultUser}},
		{"alice", []QuotaFilter{{UserPart, MatchExact, &alice}}, false, []QuotaEntity{user, userApp}},
		{"the default user", []QuotaFilter{{UserPart, MatchDefault, nil}}, false, []QuotaEntity{defaultUser}},
		{"alice with an application", []QuotaFilter{{UserPart, MatchExact, &alice}, {ClientIDPart, MatchAny, nil}}, true, []QuotaEntity{userApp}},
	} {
		byType := map[string]*QuotaFilter{}
		for i := range c.filters {
			byType[c.filters[i].Type] = &c.filters[i]
		}
		var got []QuotaEntity
		for _, e := range all {
			if matches(e, byType, c.strict) {
				got = append(got, e)
			}
		}
		assert.Equal(t, c.want, got, c.name)
	}
}

func TestSettingsAreCheckedInTheOrderGiven(t *testing.T) {
	assert.Equal(t, []string{"z", "a", "b", "c"}, keysInOrder(map[string]string{"a": "", "b": "", "z": "", "c": ""}, []string{"z", "a", "gone", "z"}))
	assert.True(t, slices.IsSorted(keysInOrder(map[string]string{"b": "", "a": ""}, nil)))
}

// A cluster of Kafka 3.9.1 stored this for SCRAM-SHA-256=[iterations=4096,password=secret].
func TestCredentialsAreThoseThatKafkaMakesOfTheSamePassword(t *testing.T) {
	const stored = "salt=cG15MTRxYW5uazdkcDUzOGh1NWEyemc2MQ==,stored_key=pkLZVuVPdYZzy5ZQLeNHiVMbyhRCMgYw8k8L4QqJ2xo=,server_key=/n1H7yln1FbXQJV5k3gBzbbHgEyPI5+d+sHnA8+foIg=,iterations=4096"
	c, err := ParseScramCredential(stored)
	require.NoError(t, err)
	assert.Equal(t, stored, c.String())
	salted, err := SaltPassword(ScramSHA256, "secret", c.Salt, c.Iterations)
	require.NoError(t, err)
	assert.Equal(t, stored, NewScramCredential(ScramSHA256, c.Salt, salted, c.Iterations).String())
	for _, bad := range []string{"", "salt=x", "salt=,stored_key=,server_key=,iterations=x", "a=b", stored + ",iterations=0"} {
		_, err := ParseScramCredential(bad)
		assert.Error(t, err, bad)
	}
}
