package lane

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A row of ports is nobody's but who asked for it: also of those that are not listened at yet, none is given again.
func TestNoPortOfARowIsGivenAgain(t *testing.T) {
	given.ports = nil // those of a run before
	mine := map[int]bool{}
	for range 20 {
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

// Who asks for more than there are is given old ones again, if nobody listens at them.
func TestPortsAreGivenAgainWhenAllWereGiven(t *testing.T) {
	held, err := listen(Port(t))
	require.NoError(t, err)
	defer held.Close()
	for range 3 * perSlice {
		assert.NotEqual(t, held.Addr().(*net.TCPAddr).Port, Port(t))
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
