package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheControlPlaneMayHaveAListener(t *testing.T) {
	set := func(control string) map[string]string {
		return map[string]string{"listeners": "A://:1,B://:2,C://:3", "advertised.listeners": "A://h:1,B://h:2", "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT",
			"inter.broker.listener.name": "A", "control.plane.listener.name": control}
	}
	v, err := New(set("b"))
	require.NoError(t, err)
	assert.Equal(t, "B", v.ControlListener())
	assert.Empty(t, v.WithoutEffect())
	v, err = New(set(""))
	require.NoError(t, err)
	assert.Equal(t, "A", v.ControlListener(), "else it is the listener between brokers")
	for _, wrong := range []string{"A", "C", "D"} {
		_, err = New(set(wrong))
		assert.ErrorContains(t, err, "control.plane.listener.name", wrong)
	}
}
