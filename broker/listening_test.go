package broker

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/config"
)

func TestWhichListenersMayBeChangedUnderABroker(t *testing.T) {
	const inside, outside = "INSIDE://127.0.0.1:9092", "OUTSIDE://127.0.0.1:9093"
	with := func(listeners, protocols, advertised string) *config.Values {
		v, err := config.New(map[string]string{"listeners": listeners, "listener.security.protocol.map": protocols, "advertised.listeners": advertised, "inter.broker.listener.name": "INSIDE"})
		require.NoError(t, err)
		return v
	}
	const plain, mixed, more = "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT", "INSIDE:PLAINTEXT,OUTSIDE:SSL", "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,MORE:PLAINTEXT,PROVEN:SASL_PLAINTEXT"
	bound, file := with(inside+","+outside, plain, inside), with("INSIDE://127.0.0.1:9095", plain, "INSIDE://127.0.0.1:9095")
	s, err := newSecurity(t.Context(), bound, newCredentials(nil, quiet()), nil, quiet())
	require.NoError(t, err)
	b := &Broker{values: file, security: s, life: t.Context()}
	for _, c := range []struct {
		then    *config.Values
		refusal string
	}{
		{with(inside+","+outside, plain, inside+",OUTSIDE://elsewhere:9093"), ""},
		{file, ""},
		{with(inside, plain, inside), ""},
		{with(inside+",MORE://127.0.0.1:9094", more, inside), ""},
		{with(inside+","+outside, mixed, inside), "Security protocol cannot be updated for existing listener OUTSIDE"},
		{with(inside+",OUTSIDE://127.0.0.1:9094", plain, inside), "listener OUTSIDE stays where it is until the broker starts anew: add one of another name, or change its file"},
		{with(inside+",PROVEN://127.0.0.1:9094", more, inside), "listener PROVEN: GSSAPI has no login: listener.name.proven.gssapi.sasl.jaas.config, or a JAAS file that KAFKA_OPTS names, has to have an entry of Krb5LoginModule"},
	} {
		err := b.checkListeners(c.then)
		if c.refusal == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, "org.apache.kafka.common.config.ConfigException: "+c.refusal)
		}
	}
	assert.Len(t, s.open(), 2, "nothing is opened by asking")
}
