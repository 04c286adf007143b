package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExceptionsToTheLimitOfAnAddress(t *testing.T) {
	v, err := New(map[string]string{"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "10.0.0.1:5, ::1:7 ,db-1.example.com:0"})
	require.NoError(t, err)
	most, err := v.MaxConnectionsOf()
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"10.0.0.1": 5, "::1": 7, "db-1.example.com": 0}, most)

	v, err = New(nil)
	require.NoError(t, err)
	most, err = v.MaxConnectionsOf()
	require.NoError(t, err)
	assert.Empty(t, most)
}

func TestLimitsOfConnectionsThatContradictThemselvesAreRefused(t *testing.T) {
	_, err := New(map[string]string{"max.connections.per.ip": "0"})
	require.EqualError(t, err, "requirement failed: max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.")
	for _, bad := range []map[string]string{
		{"max.connections.per.ip.overrides": "10.0.0.1"},
		{"max.connections.per.ip.overrides": "10.0.0.1:many"},
		{"max.connections.per.ip.overrides": "10.0.0.1:99999999999"},
		{"max.connections.per.ip.overrides": "a host:5"},
	} {
		_, err := New(bad)
		var invalid *InvalidError
		assert.ErrorAs(t, err, &invalid, "%v", bad)
	}
}

func TestANumberMayHaveSpacesAroundIt(t *testing.T) {
	v, err := New(map[string]string{"max.connections": " 10 ", "listener.name.a.max.connections": " 3"})
	require.NoError(t, err)
	assert.EqualValues(t, 10, v.Int("max.connections"))
	assert.EqualValues(t, 3, v.IntForListener("A", "max.connections"))
	assert.EqualValues(t, 10, v.IntForListener("B", "max.connections"))
}

func TestLimitsOfConnectionsAreActedOn(t *testing.T) {
	v, err := New(map[string]string{"max.connection.creation.rate": "10", "max.connections": "10", "max.connections.per.ip": "5", "max.connections.per.ip.overrides": "::1:7",
		"listener.name.plaintext.max.connections": "3", "listener.name.plaintext.max.connection.creation.rate": "3"})
	require.NoError(t, err)
	assert.Empty(t, v.WithoutEffect())
}
