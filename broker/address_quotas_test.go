package broker

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/broker/quota"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

func TestQuotasOfAddressesAreTakenFromZooKeeper(t *testing.T) {
	zk := zkClient(t, zktest.Embedded(t))
	ctx := within(t, time.Minute)
	held := quota.NewArrivals(quota.Windows{Samples: 11, Size: time.Second})
	q := newAddressQuotas(zk, held, quietLog())
	require.NoError(t, q.load(ctx), "a cluster without the folder")

	// taken is how many of an address come in at once.
	taken := func(address string) (n int) {
		from := netip.MustParseAddr(address)
		for ; n < 1000 && held.From("A", false, from, time.UnixMilli(0)) == 0; n++ {
		}
		held.LimitAddresses(quota.AddressLimits{}) // forget what came
		q.enforceLocked()
		return n
	}
	set := func(name string, limit string) {
		require.NoError(t, zk.SetEntityConfig(ctx, zkstate.IPEntity, name, zkstate.EntityConfig{"connection_creation_rate": limit}), name)
	}
	set(zkstate.DefaultEntity, "2")
	set("10.0.0.1", "3")
	set("::1", "0")
	set("10.0.0.2", "2147483647")
	set("10.0.0.3", "nonsense")
	require.NoError(t, q.load(ctx))
	assert.Equal(t, 30, taken("10.0.0.1"))
	assert.Equal(t, 0, taken("::1"))
	assert.Equal(t, 1000, taken("10.0.0.2"), "an exception to the default")
	assert.Equal(t, 20, taken("10.0.0.3"), "what is no number does not hold")
	assert.Equal(t, 20, taken("10.0.0.4"))

	q.changed(ctx, "10.0.0.1", zkstate.EntityConfig{"connection_creation_rate": "-1"})
	assert.Equal(t, 30, taken("10.0.0.1"), "what of before holds")
	q.changed(ctx, "10.0.0.1", zkstate.EntityConfig{})
	assert.Equal(t, 20, taken("10.0.0.1"))
	q.changed(ctx, zkstate.DefaultEntity, zkstate.EntityConfig{})
	assert.Equal(t, 1000, taken("10.0.0.1"))
	assert.Equal(t, math.Inf(1), q.mu.own["10.0.0.2"].limit)
}
