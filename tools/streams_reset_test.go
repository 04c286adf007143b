package tools

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/twmb/franz-go/pkg/kadm"
)

func runStreamsReset(args ...string) ran {
	return runCommand(func(args []string, out, errs *bytes.Buffer) int {
		return StreamsReset(args, nil, out, errs)
	}, args...)
}

func TestResetsOfApplicationsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "Missing required option(s) [application-id]"},
		{"--input-topics a", "Missing required option(s) [application-id]"},
		{"--application-id a --bogus", "bogus is not a recognized option"},
		{"--application-id a --execute --dry-run", "Only one of --dry-run and --execute can be specified"},
		{"--application-id a --to-latest --to-offset 3", `Option "[to-offset]" can't be used with option "[to-latest]"`},
		{"--application-id a --from-file f --shift-by 3", `Option "[from-file]" can't be used with option "[shift-by]"`},
		{"--application-id a --application-id b --bootstrap-server 127.0.0.1:1", "ERROR: org.apache.kafka.common.KafkaException: Found multiple arguments for option application-id, but you asked for only one"},
	} {
		got := runStreamsReset(strings.Fields(c.args)...)
		assert.Equal(t, 1, got.code, c.args)
		assert.Equal(t, c.want, firstLine(got.stderr), c.args)
		assert.Empty(t, got.stdout, c.args)
	}
	help := runStreamsReset("--help")
	assert.Equal(t, 1, help.code)
	assert.Contains(t, help.stderr, "* --application-id <String: id>")
	assert.Equal(t, ran{0, "2.8.2 (Commit:3146c6ff4a24cc24)\n", ""}, runStreamsReset("--version"), "which needs no application")
}

func TestAnApplicationsOwnTopicsAreToldByTheirNames(t *testing.T) {
	a := streamsApplication{id: "app", input: []string{"app-in-changelog"}, intermediate: []string{"app-mid-repartition"}}
	own := []string{"app-store-changelog", "app-count-repartition", "app-x-subscription-registration-topic", "app-x-subscription-response-topic",
		"app-join-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000004-topic", "app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-12-topic"}
	a.topics = append([]string{"app", "app-in-changelog", "app-mid-repartition", "app-output", "application-store-changelog", "other-store-changelog", "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-x-topic",
		"app-store-changelog-2"}, own...)
	assert.ElementsMatch(t, own, a.ownTopics())
}

func TestAMemberIsPrintedAsEachReleasePrintsIt(t *testing.T) {
	static := "i"
	m := kadm.DescribedGroupMember{MemberID: "m", InstanceID: &static, ClientID: "c", ClientHost: "/127.0.0.1"}
	assert.Equal(t, "(memberId=m, groupInstanceId=i, clientId=c, host=/127.0.0.1, assignment=(topicPartitions=))", memberText(m))
	t.Setenv("BARNABAS_COMPAT", "3.9.1")
	m.InstanceID = nil
	assert.Equal(t, "(memberId=m, groupInstanceId=null, clientId=c, host=/127.0.0.1, assignment=(topicPartitions=), targetAssignment=Optional.empty)", memberText(m))
}
