package cluster

import "fmt"

// ByteCount shows a number of bytes with a unit of powers of 1000.
func ByteCount(n int64) string {
	const step = 1000
	if n < step {
		return fmt.Sprintf("%d B", n)
	}
	value, units := float64(n), "kMGTPE"
	at := -1
	for value >= step && at < len(units)-1 {
		value /= step
		at++
	}
	return fmt.Sprintf("%.1f %cB", value, units[at])
}
