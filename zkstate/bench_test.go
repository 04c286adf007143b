package zkstate_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	. "barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// BenchmarkFailover reads and writes what a new controller does for each of 10,000 partitions.
func BenchmarkFailover(b *testing.B) {
	for _, inFlight := range []int{10, 100} {
		b.Run(fmt.Sprintf("in-flight-%d", inFlight), func(b *testing.B) {
			srv := zktest.Real(b)
			c, err := Connect(Config{Servers: srv.Addr(), MaxInFlight: inFlight, Log: quiet()})
			require.NoError(b, err)
			defer c.Close()
			ctx := context.Background()
			const partitions = 10_000
			creates := []Op{Create("/p", nil)}
			var reads, writes []Op
			state := PartitionState{ISR: []int32{1, 2, 3}}.Encode()
			for i := range partitions {
				path := fmt.Sprintf("/p/%d", i)
				creates = append(creates, Create(path, state))
				reads = append(reads, Get(path).Watched())
				writes = append(writes, Set(path, state, AnyVersion))
			}
			_, err = c.Do(ctx, creates)
			require.NoError(b, err)
			_, err = c.One(ctx, Create(ControllerEpochPath, EncodeControllerEpoch(1)))
			require.NoError(b, err)
			_, generation := c.Session()
			fenced := c.FenceIn(0, generation)
			for b.Loop() {
				_, err := c.Do(ctx, reads)
				require.NoError(b, err)
				rs, err := fenced.Do(ctx, writes)
				require.NoError(b, err)
				require.NoError(b, rs[partitions-1].Err)
			}
			b.ReportMetric(2*partitions*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}
