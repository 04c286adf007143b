// Package impure does everything that a core may not do.
package impure

import (
	"crypto/rand"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"os"
	"slices"
	"time"
)

type waiter struct {
	c chan int // want a core has no channel
}

func goroutine() {
	go clock() // want a core starts no goroutine
}

func clock() {
	f := time.Now // want a core is told the time: time.Now
	_ = f
	<-time.After(1) // want a core receives from no channel; a core is told the time: time.After
}

func channels(w waiter) int {
	w.c <- 1        // want a core sends on no channel
	for range w.c { // want a core receives from no channel
	}
	select {} // want a core does not select
}

func chance() int {
	_, _ = rand.Read(nil)    // want a core draws from the source it is given: crypto/rand.Read
	return mathrand.IntN(10) // want a core draws from the source it is given: rand.IntN
}

func outside() {
	_, _ = os.Open("x")           // want a core does no I/O: os.Open
	_, _ = net.Dial("tcp", "x:1") // want a core does no I/O: net.Dial
}

func order(m map[string]int) (keys []string) {
	for k := range m { // want the order of a map shows: walk sorted keys
		keys = append(keys, k)
	}
	//purecore:anyorder
	for k := range m { // want the order of a map shows: walk sorted keys
		keys = append(keys, k)
	}
	return slices.Collect(maps.Keys(m)) // want the order of a map shows: maps.Keys outside of slices.Sorted
}
