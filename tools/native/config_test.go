package native

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func TestASettingShowsItsSourceAndDefault(t *testing.T) {
	value, file, unset := words("1"), words("2"), words("3")
	line := settingOf(cluster.DescribedSetting{Name: "retention.ms", Value: value, Source: kmsg.ConfigSourceDynamicTopicConfig, Synonyms: []cluster.SettingSource{
		{Name: "retention.ms", Value: value, Source: kmsg.ConfigSourceDynamicTopicConfig},
		{Name: "log.retention.ms", Value: file, Source: kmsg.ConfigSourceStaticBrokerConfig},
		{Name: "log.retention.ms", Value: unset, Source: kmsg.ConfigSourceDefaultConfig},
	}})
	assert.Equal(t, settingLine{Name: "retention.ms", Value: value, Source: "topic", Default: unset}, line)
	assert.Nil(t, settingOf(cluster.DescribedSetting{Value: value, Source: kmsg.ConfigSourceStaticBrokerConfig}).Default, "not told")
	assert.Equal(t, "(hidden)", shownSetting(settingLine{Sensitive: true}))
}

func TestOnlyWhatDiffersAndMayBeToldIsCompared(t *testing.T) {
	left := []settingLine{{Name: "a", Value: words("1")}, {Name: "b", Value: words("2")}, {Name: "c", Value: words("3")}, {Name: "secret", Sensitive: true, Value: words("x")}, {Name: "e"}}
	right := []settingLine{{Name: "a", Value: words("1")}, {Name: "b", Value: words("5")}, {Name: "d", Value: words("4")}, {Name: "secret", Sensitive: true, Value: words("y")}, {Name: "e"}}
	assert.Equal(t, []diffLine{{"b", words("2"), words("5")}, {"c", words("3"), nil}, {"d", nil, words("4")}}, differing(left, right))
	assert.Empty(t, differing(left, left))
}

func TestOnlyElectionsThatChangeSomethingAreHeld(t *testing.T) {
	topics := []cluster.Topic{{Name: "a", Partitions: []cluster.Partition{
		{ID: 0, Leader: 1, LeaderAlive: true, Replicas: []int32{1, 2}}, {ID: 1, Leader: 1, LeaderAlive: true, Replicas: []int32{2, 1}}, {ID: 2, Leader: -1, Replicas: []int32{3}},
	}}, {Name: "b", Partitions: []cluster.Partition{{ID: 0, Leader: 2, LeaderAlive: true, Replicas: []int32{1, 2}}}}}
	p := func(topic string, id int32) plan.Partition { return plan.Partition{Topic: topic, ID: id} }
	got, err := electable(topics, nil, cluster.ElectPreferred)
	require.NoError(t, err)
	assert.Equal(t, []election{{p("a", 1), words("1"), words("2")}, {p("a", 2), nil, words("3")}, {p("b", 0), words("2"), words("1")}}, got)
	got, err = electable(topics, []string{"b", "a-1"}, cluster.ElectPreferred)
	require.NoError(t, err)
	assert.Equal(t, []election{{p("a", 1), words("1"), words("2")}, {p("b", 0), words("2"), words("1")}}, got)
	got, err = electable(topics, []string{"a"}, cluster.ElectUnclean)
	require.NoError(t, err)
	assert.Equal(t, []election{{partition: p("a", 2)}}, got)
	_, err = electable(topics, []string{"a-9"}, cluster.ElectPreferred)
	assert.Equal(t, NotFound, exitOf(err))
}
