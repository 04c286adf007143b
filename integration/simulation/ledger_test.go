package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Committed were a and b of epoch 1, and x and y of epoch 3.
func TestAnUncleanElectionIsForgivenWhatItsLogPartsFromAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		log  []entry
		left int64
	}{
		"all of it is there":              {[]entry{{0, 1, "a", false}, {1, 1, "b", false}, {2, 3, "x", false}, {3, 3, "y", false}}, 4},
		"its log is shorter":              {[]entry{{0, 1, "a", false}, {1, 1, "b", false}, {2, 3, "x", false}}, 3},
		"it is empty":                     {nil, 0},
		"its log goes on in another way":  {[]entry{{0, 1, "a", false}, {1, 1, "b", false}, {2, 1, "c", false}, {3, 1, "d", false}, {4, 1, "e", false}}, 2},
		"a marker is where a record was":  {[]entry{{0, 1, "a", false}, {1, 1, "b", false}, {2, 1, "", true}}, 2},
		"a repeat came to the same place": {[]entry{{0, 1, "a", false}, {1, 1, "b", false}, {2, 2, "x", false}, {3, 2, "z", false}}, 3},
		"a record of one leader differs":  {[]entry{{0, 1, "a", false}, {1, 1, "damaged", false}, {2, 3, "x", false}, {3, 3, "y", false}}, 4},
		"its log was deleted up to 1":     {[]entry{{1, 1, "b", false}, {2, 1, "c", false}}, 2},
	} {
		h := &history{committed: map[int64]string{0: "a", 1: "b", 2: "x", 3: "y"}, written: map[int64]int32{0: 1, 1: 1, 2: 3, 3: 3}, end: 4}
		h.forget(h.parting(c.log, logEnd(c.log)))
		assert.Equal(t, c.left, h.end, name)
		assert.Len(t, h.committed, int(c.left), name)
		assert.Len(t, h.written, int(c.left), name)
	}
}

func logEnd(log []entry) int64 {
	if len(log) == 0 {
		return 0
	}
	return log[len(log)-1].offset + 1
}
