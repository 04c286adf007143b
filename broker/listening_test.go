package broker

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/config"
)

func TestListenersAreNotChangedUnderABroker(t *testing.T) {
	const inside, outside = "INSIDE://127.0.0.1:9092", "OUTSIDE://127.0.0.1:9093"
	with := func(listeners, protocols, advertised string) *config.Values {
		v, err := config.New(map[string]string{"listeners": listeners, "listener.security.protocol.map": protocols, "advertised.listeners": advertised, "inter.broker.listener.name": "INSIDE"})
		require.NoError(t, err)
		return v
	}
	const plain, mixed = "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT", "INSIDE:PLAINTEXT,OUTSIDE:SSL"
	bound := with(inside+","+outside, plain, inside)
	file := with(inside, plain, inside)
	for _, c := range []struct {
		then    *config.Values
		refusal string
	}{
		{with(inside+","+outside, plain, inside+",OUTSIDE://elsewhere:9093"), ""},
		{file, ""},
		{with(inside+","+outside, mixed, inside), "Security protocol cannot be updated for existing listener OUTSIDE"},
		{with(inside+",OUTSIDE://127.0.0.1:9094", plain, inside), "listeners are opened when the broker starts: change them in its file, and start it anew"},
	} {
		err := checkListeners(bound, file, c.then)
		if c.refusal == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, "org.apache.kafka.common.config.ConfigException: "+c.refusal)
		}
	}
}
