package quotas

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// visitor is a connection from one of this machine's own addresses.
type visitor struct {
	net.Conn
	came time.Time
}

func visit(t *testing.T, to, from string) visitor {
	t.Helper()
	d := net.Dialer{Timeout: most, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	came := time.Now()
	conn, err := d.Dial("tcp", to)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(came.Add(most)))
	return visitor{conn, came}
}

// answered asks for the versions; false means that the connection was closed instead.
func (v visitor) answered() bool {
	req := kmsg.NewPtrApiVersionsRequest()
	if _, err := v.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)); err != nil {
		return false
	}
	_, err := v.Read(make([]byte, 1<<16))
	return err == nil
}

// until tries until it is so; brokers learn of limits from ZooKeeper.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(most); !so(); {
		require.True(t, time.Now().Before(deadline), what)
	}
}

// connections: an address that opens them too fast, or has too many, is turned away, and clients make room for brokers. clients and brokers
// are the two listeners; whoever sets the limits comes by that of brokers, which is never full.
func connections(ctx context.Context, t *testing.T, clients, brokers string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers))
	require.NoError(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	rate := func(remove bool) {
		altered, err := admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{
			Entity: kadm.ClientQuotaEntity{{Type: "ip", Name: kadm.StringPtr("127.0.0.2")}},
			Ops:    []kadm.AlterClientQuotaOp{{Key: "connection_creation_rate", Remove: remove}},
		}})
		require.NoError(t, err)
		require.NoError(t, altered[0].Err)
	}
	try := func(change kadm.AlterConfig) kadm.AlterConfigsResponse {
		altered, err := admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{change}, 1)
		require.NoError(t, err)
		return altered[0]
	}
	alter := func(change kadm.AlterConfig) { require.NoError(t, try(change).Err) }

	for name, why := range map[string]string{
		"max.connections": "Invalid value org.apache.kafka.common.config.ConfigException: Invalid max.connections 0 for configuration Invalid dynamic configuration",
		"listener.name.plaintext.max.connection.creation.rate": "Invalid value org.apache.kafka.common.config.ConfigException: Invalid max.connection.creation.rate 0 for configuration Invalid dynamic configuration",
	} {
		refused := try(kadm.AlterConfig{Name: name, Value: kadm.StringPtr("0")})
		require.ErrorIs(t, refused.Err, kerr.InvalidRequest)
		assert.Equal(t, why, refused.ErrMessage)
	}

	rate(false)
	until(t, "an address without connections", func() bool {
		v := visit(t, clients, "127.0.0.2")
		if v.answered() {
			return false
		}
		assert.GreaterOrEqual(t, time.Since(v.came), 900*time.Millisecond, "it is held for a window before it is closed")
		return true
	})
	assert.True(t, visit(t, clients, "127.0.0.3").answered(), "another address")
	rate(true)
	until(t, "the limit was lifted", func() bool { return visit(t, clients, "127.0.0.2").answered() })

	alter(kadm.AlterConfig{Name: "max.connections.per.ip.overrides", Value: kadm.StringPtr("127.0.0.4:1")})
	require.True(t, visit(t, clients, "127.0.0.4").answered())
	until(t, "an address with one connection", func() bool {
		v := visit(t, clients, "127.0.0.4")
		defer v.Close()
		return !v.answered()
	})

	idle := visit(t, clients, "127.0.0.3")
	require.True(t, idle.answered())
	alter(kadm.AlterConfig{Name: "max.connections", Value: kadm.StringPtr("1")})
	_, err = idle.Read(make([]byte, 1))
	var late net.Error
	if assert.Error(t, err) && assert.NotErrorAs(t, err, &late, "it is still open") {
		assert.True(t, visit(t, brokers, "127.0.0.3").answered(), "the listener between brokers")
	}
	alter(kadm.AlterConfig{Op: kadm.DeleteConfig, Name: "max.connections"})
	until(t, "the limit was lifted", func() bool { return visit(t, clients, "127.0.0.3").answered() })
}
