package tools

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func runGroups(args ...string) ran {
	return runCommand(func(args []string, out, errs *bytes.Buffer) int { return ConsumerGroups(args, nil, out, errs) }, args...)
}

func TestGroupCallsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--list", `Missing required argument "[bootstrap-server]"`},
		{"--bootstrap-server b", "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, --delete-offsets"},
		{"--bootstrap-server b --list --describe", "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, --delete-offsets"},
		{"--bootstrap-server b --describe", "Option [describe] takes one of these options: [group], [all-groups]"},
		{"--bootstrap-server b --describe --group g --all-groups", `Option "[group]" can't be used with option "[all-groups]"`},
		{"--bootstrap-server b --describe --group g --members --state", "Option [describe] takes at most one of these options: [members], [offsets], [state]"},
		{"--bootstrap-server b --describe --group g --state Empty", "Option [describe] does not take a value for [state]"},
		{"--bootstrap-server b --delete --group g --topic t", "The consumer does not support topic-specific offset deletion from a consumer group."},
		{"--bootstrap-server b --delete-offsets --group g", "Option [delete-offsets] takes the following options: [group], [topic]"},
		{"--bootstrap-server b --reset-offsets --group g --dry-run --execute", "Option [reset-offsets] only accepts one of [execute] and [dry-run]"},
		{"--bootstrap-server b --reset-offsets --group g --execute --to-earliest --to-latest", `Option "[to-earliest]" can't be used with option "[to-latest]"`},
	} {
		got := runGroups(strings.Fields(c.args)...)
		assert.Equal(t, 1, got.code, c.args)
		assert.Equal(t, c.want, firstLine(got.stderr), c.args)
	}
}

func TestALagIsNeverMadeUp(t *testing.T) {
	p := plan.Partition{Topic: "t", ID: 3}
	m := &kadm.DescribedGroupMember{MemberID: "m", ClientHost: "/h", ClientID: "c"}
	assert.Equal(t, []string{"g", "t", "3", "2", "5", "3", "m", "/h", "c"}, offsetCells("g", cluster.GroupPartition{Partition: p, Current: 2, End: 5, Member: m}))
	assert.Equal(t, []string{"g", "t", "3", "-", "5", "-", "-", "-", "-"}, offsetCells("g", cluster.GroupPartition{Partition: p, Current: -1, End: 5}))
	assert.Equal(t, []string{"g", "t", "3", "2", "-", "-", "-", "-", "-"}, offsetCells("g", cluster.GroupPartition{Partition: p, Current: 2, End: -1}))
	assert.Equal(t, "0", offsetCells("g", cluster.GroupPartition{Partition: p, Current: 6, End: 5})[5], "the end was read before the commit came")
}

func TestGroupsAreToldInJSON(t *testing.T) {
	p := plan.Partition{Topic: "t", ID: 0}
	d := kadm.DescribedGroup{State: "Stable", Protocol: "range", Coordinator: kadm.BrokerDetail{NodeID: 1, Host: "h", Port: 9092}, Members: []kadm.DescribedGroupMember{{MemberID: "m", ClientHost: "/h", ClientID: "c"}}}
	var out bytes.Buffer
	g := groupTool{f: face{stdout: &out}}
	g.printJSON([]groupJSON{describedGroupJSON("g", d, []cluster.GroupPartition{{Partition: p, Current: 2, End: 5, Member: &d.Members[0]}, {Partition: plan.Partition{Topic: "t", ID: 1}, Current: -1, End: 5}}), {Group: "nope", Error: "not there"}})
	assert.Equal(t, `{"version":1,"groups":[{"group":"g","state":"Stable","assignmentStrategy":"range","coordinator":{"id":1,"host":"h","port":9092},"lag":3,`+
		`"members":[{"consumerId":"m","groupInstanceId":null,"host":"/h","clientId":"c","assignment":[]}],`+
		`"offsets":[{"topic":"t","partition":0,"currentOffset":2,"logEndOffset":5,"lag":3,"consumerId":"m"},{"topic":"t","partition":1,"currentOffset":null,"logEndOffset":5,"lag":null,"consumerId":null}]},`+
		`{"group":"nope","error":"not there"}]}`+"\n", out.String())
}

func TestWhoAsksForJSONGetsTrueExitCodes(t *testing.T) {
	got := runGroups(strings.Fields("--bootstrap-server 127.0.0.1:1 --list --output json")...)
	assert.Equal(t, 1, got.code)
	assert.Empty(t, got.stdout)
	assert.Contains(t, got.stderr, "connection refused")
	assert.Zero(t, runGroups(strings.Fields("--bootstrap-server 127.0.0.1:1 --list")...).code, "as the original")
	got = runGroups(strings.Fields("--bootstrap-server b --list --output xml")...)
	assert.Equal(t, 1, got.code)
	assert.Equal(t, "Invalid output 'xml'. Valid outputs are: text, json", firstLine(got.stderr))
	assert.Equal(t, "Option [output] takes one of these options: [list], [describe]", firstLine(runGroups(strings.Fields("--bootstrap-server b --delete --group g --output json")...).stderr))
}

func TestAnAssignmentIsShownByTopic(t *testing.T) {
	assert.Equal(t, "a(0,2), b(1)", assignmentText([]plan.Partition{{Topic: "a", ID: 0}, {Topic: "a", ID: 2}, {Topic: "b", ID: 1}}))
	assert.Equal(t, "-", assignmentText(nil))
}

func TestExportedOffsetsAreReadBack(t *testing.T) {
	p, q := plan.Partition{Topic: "a", ID: 0}, plan.Partition{Topic: "a", ID: 10}
	resets := map[string]map[plan.Partition]int64{"g2": {p: 7}, "g1": {q: 5, p: 3}}
	assert.Equal(t, "g1,a,0,3\ng1,a,10,5\ng2,a,0,7\n", exportedOffsets(resets, false))
	one := map[string]map[plan.Partition]int64{"g1": resets["g1"]}
	assert.Equal(t, "a,0,3\na,10,5\n", exportedOffsets(one, true))
	for _, c := range []struct {
		text string
		want map[string]map[plan.Partition]int64
	}{{exportedOffsets(resets, false), resets}, {exportedOffsets(one, true), one}} {
		back, err := cluster.ReadResetFile(csv.NewReader(strings.NewReader(c.text)), "g1")
		require.NoError(t, err)
		assert.Equal(t, c.want, back)
	}
	for text, want := range map[string]string{"a,b": "line 1 of the file has 2 fields", "a,x,1": "has no partition", "a,0,1\na,0,x": "line 2 of the file has no offset"} {
		_, err := cluster.ReadResetFile(csv.NewReader(strings.NewReader(text)), "g1")
		assert.ErrorContains(t, err, want)
	}
}

func TestMainClassesOfBothErasAreKnown(t *testing.T) {
	assert.Equal(t, "kafka-get-offsets", CommandOfClass("kafka.tools.GetOffsetShell"))
	assert.Equal(t, "kafka-topics", CommandOfClass("org.apache.kafka.tools.TopicCommand"))
	assert.Empty(t, CommandOfClass("kafka.tools.NoSuch"))
}
