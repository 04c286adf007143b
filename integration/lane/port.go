package lane

import (
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Ports of 127.0.0.1 for programs that a test starts. They are none of those that systems give to outgoing connections (32768 and up on Linux), or one of these might have it before the
// program. Each test process takes from a slice of its own, as another might be given the same port before either program has it.
const (
	firstPort = 15000
	slices    = 17
	perSlice  = 1000
)

var given struct {
	sync.Mutex
	ports map[int]bool
}

// Port returns a port that is free now, and that this process was not given before.
func Port(t testing.TB) int {
	t.Helper()
	given.Lock()
	defer given.Unlock()
	if len(given.ports) > perSlice/2 {
		given.ports = nil
	}
	for range 10 * perSlice {
		port := firstPort + os.Getpid()%slices*perSlice + rand.IntN(perSlice)
		if given.ports[port] {
			continue
		}
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			if given.ports == nil {
				given.ports = map[int]bool{}
			}
			given.ports[port] = true
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}
