package zkstate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "barnabas/zkstate"
)

// BR-020, H29, H31: sessions expire again and again under load. Each ends in a new one in which the owner registers
// again; what belongs to a session is never made by another; and nothing is left behind.
func sessionsExpireAgainAndAgainUnderLoad(t *testing.T, addr string) {
	p := newProxy(t, addr)
	c := connect(t, p.addr(), func(c *Config) { c.SessionTimeout = shortSession })
	ctx := within(t, 60*time.Second)
	require.NoError(t, c.MakePersistentPaths(ctx))
	events := c.Subscribe()

	sessions := sync.Map{} // generation to session id
	id, generation := c.Session()
	sessions.Store(generation, id)
	stop := make(chan struct{})
	var wrote atomic.Int64
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_, g := c.Session()
				path := fmt.Sprintf("/e-%d-%d-%d", g, w, i)
				_, err := c.One(WithGeneration(ctx, g), CreateEphemeral(path, nil))
				switch {
				case err == nil:
					wrote.Add(1)
				case errors.Is(err, ErrSessionExpired), errors.Is(err, ErrConnectionLoss):
				default:
					assert.NoError(t, err)
					return
				}
			}
		}()
	}
	for cycle := range 3 {
		require.Eventually(t, func() bool { return wrote.Load() > int64(20*cycle) }, time.Minute, time.Millisecond)
		_, err := c.RegisterEphemeral(ctx, BrokerIDPath(1), []byte("x"))
		require.NoError(t, err)
		p.refuse()
		expect(t, events, SessionLapsed)
		waitFor(t, func() bool { return !sessionAlive(t, addr, chroot(t)+BrokerIDPath(1)) })
		p.heal()
		started := expect(t, events, SessionStarted)
		sessions.Store(started.Generation, started.Session)
	}
	_, err := c.RegisterEphemeral(ctx, BrokerIDPath(1), []byte("x"))
	require.NoError(t, err)
	close(stop)
	wg.Wait()

	names, err := c.One(ctx, Children("/"))
	require.NoError(t, err)
	checked := 0
	for _, name := range names.Children {
		var g, w, i int
		if n, _ := fmt.Sscanf(name, "e-%d-%d-%d", &g, &w, &i); n != 3 {
			continue
		}
		r, err := c.One(context.Background(), Exists("/"+name))
		require.NoError(t, err)
		want, ok := sessions.Load(g)
		require.True(t, ok)
		assert.Equal(t, want, r.Stat.EphemeralOwner, "%s was made by another session", name)
		checked++
	}
	assert.Positive(t, checked)
}

// Whoever acts on a session that may be over acts beside a successor. The client stops being sure before the server takes the session for ended, also when nobody tells it anything.
func clientKnowsThatItsSessionMayBeOverBeforeItIs(t *testing.T, addr string) {
	p := newProxy(t, addr)
	c := connect(t, p.addr(), func(c *Config) { c.SessionTimeout = 2 * shortSession })
	ctx := within(t, 60*time.Second)
	require.NoError(t, c.MakePersistentPaths(ctx))
	_, err := c.RegisterEphemeral(ctx, BrokerIDPath(1), []byte("x"))
	require.NoError(t, err)
	_, generation := c.Session()
	looks, sure := 0, 0
	for rest, look := time.After(2*c.SessionTimeout()), time.NewTicker(10*time.Millisecond); rest != nil; {
		select {
		case <-rest:
			rest = nil
			look.Stop()
		case <-look.C:
			looks++
			if c.Alive(generation) {
				sure++
			}
		}
	}
	require.Greater(t, sure, looks/2, "it is at rest, and pings; unless it was held up it is always sure")
	waitFor(t, func() bool { return c.Alive(generation) })
	require.False(t, c.Alive(generation+1))
	p.refuse()
	waitFor(t, func() bool { return !sessionAlive(t, addr, chroot(t)+BrokerIDPath(1)) })
	require.False(t, c.Alive(generation))
	p.heal()
	waitFor(t, func() bool {
		_, next := c.Session()
		return next != generation && c.Alive(next)
	})
	require.False(t, c.Alive(generation))
}

// What a start asks is asked again when the session ends under it; any other refusal stands.
func aStartOutlivesItsSession(t *testing.T, addr string) {
	p := newProxy(t, addr)
	c := connect(t, p.addr(), func(c *Config) { c.SessionTimeout = shortSession })
	ctx := within(t, 60*time.Second)
	require.NoError(t, c.MakePersistentPaths(ctx))
	_, err := c.RegisterEphemeral(ctx, BrokerIDPath(1), []byte("x"))
	require.NoError(t, err)
	var met []error
	require.NoError(t, c.ThroughSessions(ctx, "looking", func() error {
		if len(met) == 0 {
			p.refuse()
			waitFor(t, func() bool { return !sessionAlive(t, addr, chroot(t)+BrokerIDPath(1)) })
			time.AfterFunc(100*time.Millisecond, p.heal)
		}
		_, err := c.One(ctx, Children("/"))
		met = append(met, err)
		return err
	}))
	assert.ErrorIs(t, met[0], ErrSessionExpired)
	asked := 0
	assert.ErrorIs(t, c.ThroughSessions(ctx, "looking", func() error { asked++; return ErrNoNode }), ErrNoNode)
	assert.Equal(t, 1, asked)
}
