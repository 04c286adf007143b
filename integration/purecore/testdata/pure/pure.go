// Package pure does what a core may do, near the edge.
package pure

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"time"
)

func sortedKeys(m map[string]int) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func work(m map[string]int, now time.Time, r *rand.Rand, err error) int {
	sum := r.IntN(3) + rand.New(rand.NewPCG(1, 2)).IntN(4)
	//purecore:anyorder a sum is the same in any order
	for _, v := range m {
		sum += v
	}
	for range slices.Sorted(maps.Keys(m)) {
		sum++
	}
	if os.IsNotExist(err) || errors.Is(err, os.ErrExist) || net.ParseIP("::1") != nil || now.Add(time.Second).After(now) {
		sum += len(sortedKeys(m))
	}
	return sum
}
