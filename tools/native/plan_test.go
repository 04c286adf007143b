package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func placed(topic string, id int32, bytes int64, replicas ...int32) plan.Placed {
	return plan.Placed{Partition: plan.Partition{Topic: topic, ID: id}, Replicas: replicas, Bytes: bytes}
}

func smallWorld() *cluster.World {
	w := &cluster.World{Alive: []cluster.Broker{{ID: 1}, {ID: 2}, {ID: 3}}, Free: map[int32]int64{3: 1500}}
	w.Brokers = []plan.Broker{{ID: 1}, {ID: 2}, {ID: 3}}
	w.Partitions = []plan.Placed{placed("t", 0, 1000, 1, 2), placed("t", 1, 2000, 2, 1)}
	w.InSync = map[plan.Partition]int{{Topic: "t", ID: 0}: 2, {Topic: "t", ID: 1}: 1}
	return w
}

func TestAPlanShowsWhatItCostsAndHowToTakeItBack(t *testing.T) {
	w := smallWorld()
	to, err := w.Vacate([]int32{1}, nil)
	require.NoError(t, err)
	d := planOf("drain 1", w, to)
	var out strings.Builder
	d.show(&out)
	assert.Equal(t, `drain 1: 2 partitions, 2 replicas and 3.0 kB copied, 1 new preferred leader.

PARTITION  REPLICAS  TO   COPIES  LEADER
t-0        1,2       3,2  1.0 kB  1 to 3
t-1        2,1       2,3  2.0 kB  -

BROKER  RACK  REPLICAS  AFTER  LEADERS  AFTER  IN      OUT     FREE    AFTER
1       -     2         0      1        0      0 B     3.0 kB  -       -
2       -     2         2      1        1      0 B     0 B     -       -
3       -     0         2      0        1      3.0 kB  0 B     1.5 kB  -1.5 kB

Smallest ISR meanwhile: 1, of t-1.
Warning: broker 3 gets 3.0 kB and has room for 1.5 kB.
`, out.String())
	assert.Equal(t, plan.Assignment{{Topic: "t", ID: 0}: {1, 2}, {Topic: "t", ID: 1}: {2, 1}}.File(), d.Rollback)
}

func TestAPlanIsAFileForKafkasCommandAndForOurOwn(t *testing.T) {
	w := smallWorld()
	to, err := w.Vacate([]int32{1}, nil)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "plan.json")
	require.NoError(t, save(path, planOf("drain 1", w, to)))
	read, err := readPlan(path)
	require.NoError(t, err)
	assert.Equal(t, to, read)
	assert.ErrorIs(t, save(path, planOf("drain 1", w, to)), os.ErrExist, "what is there may be the way back from another plan")
}

func TestRatesHaveUnits(t *testing.T) {
	for text, want := range map[string]int64{"1000": 1000, "80MB/s": 80e6, "1.5k": 1500, "50MiB": 50 << 20, "2GiB/s": 2 << 30, "10 MB/s": 10e6, "7B": 7} {
		got, err := readRate(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "fast", "0", "-5MB", "0.2", "NaN", "Inf", "1e30", "5 apples"} {
		_, err := readRate(text)
		assert.Equal(t, WrongUsage, exitOf(err), text)
	}
}

func TestProgressSaysWhatStandsStill(t *testing.T) {
	at := time.Unix(1000, 0)
	var going, still, all cluster.Pace
	for i := range 12 {
		going.See(at.Add(time.Duration(i)*time.Second), int64(12_000-1000*i))
		still.See(at.Add(time.Duration(i)*time.Second), 500)
		all.See(at.Add(time.Duration(i)*time.Second), int64(12_500-1000*i))
	}
	d := progressOf([]cluster.Left{
		{Partition: plan.Partition{Topic: "t", ID: 0}, Move: cluster.Move{Replicas: []int32{3, 1}, Adding: []int32{3}, Removing: []int32{1}}, Bytes: 1000, Pace: &going},
		{Partition: plan.Partition{Topic: "t", ID: 1}, Move: cluster.Move{Replicas: []int32{3, 1}, Adding: []int32{3}}, Bytes: 500, Pace: &still},
	}, 1500, &all, map[int32][]cluster.Setting{2: {{Name: cluster.LeaderThrottleRate, Value: "1000000"}}})
	var out strings.Builder
	d.show(&out)
	assert.Equal(t, `2 partitions moving, 1.5 kB left, 1.0 kB/s, about 2s to go, stalled
PARTITION  REPLICAS  ADDING  REMOVING  LEFT    RATE      TO GO  STATE
t-0        3,1       3       1         1.0 kB  1.0 kB/s  1s     moving
t-1        3,1       3       -         500 B   -         -      stalled
Broker 2: leader.replication.throttled.rate 1.0 MB/s
`, out.String())
}

func TestAPlanIsComparedWithWhatIs(t *testing.T) {
	p := func(id int32) plan.Partition { return plan.Partition{Topic: "t", ID: id} }
	d := verified(plan.Assignment{p(0): {1, 2}, p(1): {1, 2}, p(2): {1, 2}, p(3): {1}}, plan.Assignment{p(0): {1, 2}, p(1): {2, 1}, p(2): {1, 2, 3}}, cluster.Moves{p(2): {}})
	var states []string
	for _, l := range d.Partitions {
		states = append(states, l.State)
	}
	assert.Equal(t, []string{"complete", "different", "moving", "missing"}, states)
	assert.False(t, d.Complete)
	assert.True(t, verified(plan.Assignment{p(0): {1, 2}}, plan.Assignment{p(0): {1, 2}}, nil).Complete)
}
