package native

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func TestTopShowsTheMostFirstAndWhatIsNotKnownAsADash(t *testing.T) {
	p, q := plan.Partition{Topic: "quiet", ID: 0}, plan.Partition{Topic: "busy", ID: 0}
	reading := func(second, end, size int64) *cluster.Reading {
		at := time.Unix(second, 0)
		return &cluster.Reading{CommittedAt: at, EndsAt: at, SizesAt: at, Leaders: map[plan.Partition]int32{p: 1, q: 1}, Ends: map[plan.Partition]int64{p: 10, q: end}, Sizes: map[int32]map[plan.Partition]int64{1: {p: 1000, q: size}},
			Committed: map[string]map[plan.Partition]int64{"slow": {q: 100}, "new": {}}}
	}
	before, after := reading(0, 1000, 50000), reading(2, 3000, 150000)
	show := func(by string) string {
		d := topOf(by, before, after)
		d.busiest()
		var out strings.Builder
		d.show(&out)
		return out.String()
	}
	assert.Equal(t, "TOPIC  MESSAGES/S  IN         OUT (ABOUT)  SIZE\nbusy   1000.0      50.0 kB/s  0 B/s        150.0 kB\nquiet  0.0         0 B/s      -            1.0 kB\n", show("topic"))
	assert.Equal(t, "BROKER  MESSAGES/S  IN         OUT (ABOUT)  SIZE\n1       1000.0      50.0 kB/s  0 B/s        151.0 kB\n", show("broker"))
	assert.Equal(t, "GROUP  READS/S  OUT (ABOUT)  LAG   LAG/S    CLEAR IN\nslow   0.0      0 B/s        2900  +1000.0  -\nnew    -        -            -     -        -\n", show("group"))
}
