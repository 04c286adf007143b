package lane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A row of ports is nobody's but who asked for it: also of those that are not listened at yet, none is given again.
func TestNoPortOfARowIsGivenAgain(t *testing.T) {
	mine := map[int]bool{}
	for range 40 {
		first := Ports(t, 6)
		for port := first; port < first+6; port++ {
			assert.False(t, mine[port], "port %d", port)
			mine[port] = true
		}
		port := Port(t)
		assert.False(t, mine[port], "port %d", port)
		mine[port] = true
	}
}

// Another process does not get a port of ours, as it finds the first of the slice taken.
func TestASliceIsOneProcesssAlone(t *testing.T) {
	port := Port(t)
	require.NotNil(t, given.first)
	_, err := listen(takeSlice(t))
	assert.Error(t, err)
	assert.Greater(t, port, takeSlice(t))
}
