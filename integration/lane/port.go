package lane

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports of 127.0.0.1 for programs that a test starts. They are none of those that systems give to outgoing connections (32768 and up on Linux), or one of these might have it before the
// program. Each test process takes from a slice of its own, as another might be given the same port before either program has it: it keeps listening at the first port of its slice, which
// nobody else gets meanwhile.
const (
	firstPort = 15000
	slices    = 34 // more than there are packages whose tests take ports, as many cores run them side by side
	perSlice  = 500
)

var given struct {
	sync.Mutex
	first net.Listener // of the slice
	ports map[int]bool
}

// Port returns a port that is free now, and that this process was not given before as long as there are others.
func Port(t testing.TB) int {
	t.Helper()
	return Ports(t, 1)
}

// Ports is Port for n ports in a row, and returns the first.
func Ports(t testing.TB, n int) int {
	t.Helper()
	given.Lock()
	defer given.Unlock()
	slice := takeSlice(t)
	for range 2 { // when all were given, those of programs that have ended are given again
		for range 10 * perSlice {
			port := slice + 1 + rand.IntN(perSlice-n)
			if !free(port, n) {
				continue
			}
			if given.ports == nil {
				given.ports = map[int]bool{}
			}
			for i := range n {
				given.ports[port+i] = true
			}
			return port
		}
		given.ports = nil
	}
	t.Fatal("no port is free")
	return 0
}

// free tells whether n ports from one on are free and were not given.
func free(port, n int) bool {
	for i := range n {
		if given.ports[port+i] {
			return false
		}
		l, err := listen(port + i)
		if err != nil || l.Close() != nil {
			return false
		}
	}
	return true
}

// takeSlice returns the first port of this process's slice.
func takeSlice(t testing.TB) int {
	t.Helper()
	if given.first == nil {
		for _, i := range rand.Perm(slices) {
			if l, err := listen(firstPort + i*perSlice); err == nil {
				given.first = l
				break
			}
		}
		if given.first == nil {
			t.Fatal("no slice of ports is free")
		}
	}
	return given.first.Addr().(*net.TCPAddr).Port
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}
