package smallworld

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// counter counts up by one or two to its end; bad is a number that it must not come to, stuck one that it cannot leave.
type counter struct{ at, end, bad, stuck int }

func (c *counter) Do(event int) (bool, error) {
	if c.at+event+1 > c.end {
		return false, nil
	}
	c.at += event + 1
	if c.at == c.bad {
		return true, errors.New("bad")
	}
	return true, nil
}

func (c *counter) Key(dst []byte) []byte { return append(dst, byte(c.at)) }

func (c *counter) Heal() error {
	if c.at == c.stuck {
		return errors.New("stuck")
	}
	return nil
}

func explore(end, bad, stuck, limit int) Found {
	return Explore([]string{"one", "two"}, func() World { return &counter{end: end, bad: bad, stuck: stuck} }, limit)
}

func TestEveryStateIsSeenOnce(t *testing.T) {
	require.Equal(t, Found{States: 201, Depth: 101, Whole: true}, explore(200, -1, -1, 1000))
	require.Equal(t, 50, explore(200, -1, -1, 50).States)
}

func TestTheShortestWayToWhatIsBrokenIsTold(t *testing.T) {
	found := explore(200, 5, -1, 1000)
	require.EqualError(t, found.Err, "bad")
	require.Len(t, found.History, 3)
	found = explore(200, -1, 3, 1000)
	require.EqualError(t, found.Err, "after healing: stuck")
	require.Len(t, found.History, 2)
}
