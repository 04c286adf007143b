package tools

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin/plan"
)

func TestElectionCallsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--topic", "t"}, "Missing required option(s): election-type, bootstrap-server"},
		{[]string{"--bootstrap-server", "b", "--election-type", "preferred"}, "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"},
		{[]string{"--bootstrap-server", "b", "--election-type", "preferred", "--topic", "t", "--all-topic-partitions"}, "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"},
		{[]string{"--bootstrap-server", "b", "--election-type", "preferred", "--topic", "t"}, "Missing required option(s): partition"},
		{[]string{"--bootstrap-server", "b", "--election-type", "preferred", "--all-topic-partitions", "--partition", "1"}, "Option partition is only allowed if topic is used"},
		{[]string{"--bootstrap-server", "b", "--election-type", "dirty", "--all-topic-partitions"}, "Cannot parse argument 'dirty' of option election-type"},
	} {
		assert.EqualError(t, leaderElection(face{}, parsed(t, leaderElectionOptions, c.args...)), c.want)
	}
}

func TestElectionFilesAreReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                 `Replica election data is missing "partitions" field`,
		`{"partitions":{}}`:  "Expected a list at partitions, but it is an object",
		`{"partitions":[1]}`: "Expected an object at partitions[0], but it is 1",
		`{"partitions":[{"topic":"t","partition":1},{"topic":"t","partition":1}]}`: "Replica election data contains duplicate partitions: t-1",
		`{"partitions":[{"topic":"t","partition":"1"}]}`:                           `Expected a whole number at partitions[0].partition, but it is the text "1"`,
	} {
		_, err := readElectionFile(parsed(t, leaderElectionOptions, "--path-to-json-file", file(t, text)), "Replica")
		assert.EqualError(t, err, want)
	}
	got, err := readElectionFile(parsed(t, leaderElectionOptions, "--path-to-json-file", file(t, `{"partitions":[{"topic":"t","partition":1}],"more":1}`)), "Replica")
	require.NoError(t, err)
	assert.Equal(t, []plan.Partition{{Topic: "t", ID: 1}}, got)
}

func TestElectionResultsAreToldApart(t *testing.T) {
	var out, errs bytes.Buffer
	f := face{stdout: &out, stderr: &errs}
	gone := &answerError{Code: kerr.UnknownTopicOrPartition, Message: "The partition does not exist."}
	err := printElection(f, map[plan.Partition]error{
		{Topic: "a", ID: 1}: nil, {Topic: "a", ID: 0}: nil, {Topic: "b", ID: 0}: &answerError{Code: kerr.ElectionNotNeeded}, {Topic: "nope", ID: 1}: gone,
	}, electionWords{"Successfully completed leader election (PREFERRED) for partitions", "Valid replica already elected for partitions", "Error completing leader election (PREFERRED) for partition:", "replica(s) could not be elected"})
	assert.Equal(t, `Successfully completed leader election (PREFERRED) for partitions a-0, a-1
Valid replica already elected for partitions b-0
Error completing leader election (PREFERRED) for partition: nope-1: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: The partition does not exist.
`, out.String())
	require.EqualError(t, err, "1 replica(s) could not be elected")
	assert.Equal(t, 1, f.uncaught(err))
	assert.Equal(t, "Exception in thread \"main\" kafka.common.AdminCommandFailedException: 1 replica(s) could not be elected\n\tSuppressed: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: The partition does not exist.\n", errs.String())

	out.Reset()
	require.NoError(t, printElection(f, nil, electionWords{}))
	assert.Empty(t, out.String(), "all partitions and nothing to do")
}

func TestASetIsShownAsScalaDoes(t *testing.T) {
	var list []plan.Partition
	for id := range int32(5) {
		list = append(list, plan.Partition{Topic: "t", ID: id})
	}
	assert.Equal(t, "Set(t-0, t-1, t-2, t-3)", scalaSet(list[:4]))
	assert.Equal(t, "HashSet(t-0, t-1, t-2, t-3, t-4)", scalaSet(list))
}

func TestOffsetsToDeleteAreReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:            "Missing partitions field",
		`{"version":3}`: "Not supported version field value 3",
		`{"partitions":[{"topic":"t","partition":0}]}`:                                                   "No such field exists: `offset` at partitions[0]",
		`{"partitions":[{"topic":"t","partition":0,"offset":-2}]}`:                                       "Expected a whole number from -1 to 9223372036854775807 at partitions[0].offset, but it is -2",
		`{"partitions":[{"topic":"t","partition":0,"offset":1},{"topic":"t","partition":0,"offset":2}]}`: "Offset json file contains duplicate topic partitions: t-0",
	} {
		v, err := parseJSON([]byte(text))
		require.NoError(t, err)
		_, _, err = readOffsetsToDelete(v)
		assert.EqualError(t, err, want)
	}
}

func TestDirectoriesAreWrittenInTheOrderOfEachRelease(t *testing.T) {
	class := "org.apache.kafka.common.errors.KafkaStorageException"
	dirs := []brokerDirs{{1, []dirInfo{{"/a<b", nil, []dirReplicas{{"t-0", 5, 0, true}}}, {"/c", &class, []dirReplicas{}}}}}
	assert.Equal(t, `{"version":1,"brokers":[{"broker":1,"logDirs":[{"logDir":"/a<b","error":null,"partitions":[{"partition":"t-0","size":5,"offsetLag":0,"isFuture":true}]},{"logDir":"/c","error":"org.apache.kafka.common.errors.KafkaStorageException","partitions":[]}]}]}`, dirsJSON(dirs))
	t.Setenv("BARNABAS_COMPAT", "3.9")
	assert.Equal(t, `{"brokers":[{"broker":1,"logDirs":[{"partitions":[{"partition":"t-0","size":5,"offsetLag":0,"isFuture":true}],"error":null,"logDir":"/a<b"},{"partitions":[],"error":"org.apache.kafka.common.errors.KafkaStorageException","logDir":"/c"}]}],"version":1}`, dirsJSON(dirs))
	assert.Equal(t, `{"brokers":[],"version":1}`, dirsJSON(nil))
}
