package oauth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATokenIsRenewedBeforeItsEnd(t *testing.T) {
	usual := refresh{factor: 0.8, jitter: 0.05, minPeriod: time.Minute, buffer: 5 * time.Minute}
	in := func(d time.Duration) time.Time { return now.Add(d) }
	for _, c := range []struct {
		name            string
		issued, expires time.Duration // from now
		random          float64
		want            time.Duration
	}{
		{"after a part of its life", 0, time.Hour, 0, 48 * time.Minute},
		{"a little later, so that not all do at once", 0, time.Hour, 1, 51 * time.Minute},
		{"counted from when it was issued", -30 * time.Minute, 90 * time.Minute, 0, 66 * time.Minute},
		{"not too near its end", 0, 10 * time.Minute, 0, 5 * time.Minute},
		{"one that lives briefly", -time.Hour, 5 * time.Minute, 0, 4 * time.Minute},
		{"one that hardly lives", 0, time.Millisecond, 0, time.Second},
		{"one that has ended", -time.Hour, -time.Second, 0, 10 * time.Second},
	} {
		at := usual.at(Bearer{Issued: in(c.issued), Expires: in(c.expires)}, now, c.random)
		assert.InDelta(t, c.want, at.Sub(now), float64(time.Millisecond), c.name)
	}
	hour := Bearer{Issued: in(-time.Hour), Expires: in(time.Hour)}
	assert.Equal(t, time.Minute, refresh{factor: 0.1, minPeriod: time.Minute}.at(hour, now, 0).Sub(now), "not more often than that")
	assert.Equal(t, 30*time.Minute, refresh{factor: 0.5}.at(Bearer{Expires: in(time.Hour)}, now, 0).Sub(now), "a token may not say when it was issued")
}

// supplier gives tokens that live for an hour, or fails.
type supplier struct {
	given  int
	failed error
	takes  time.Duration
}

func (s *supplier) obtain(ctx context.Context) (Bearer, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return Bearer{}, ctx.Err()
	}
	if s.failed != nil {
		return Bearer{}, s.failed
	}
	s.given++
	return Bearer{Value: string(rune('0' + s.given)), Issued: time.Now(), Expires: time.Now().Add(time.Hour)}, nil
}

func loginOf(t *testing.T, s *supplier) *Login {
	t.Helper()
	l, err := told(map[string]string{"sasl.login.refresh.window.jitter": "0"}, nil).login("x_", quiet(), s.obtain)
	require.NoError(t, err)
	return l
}

func value(t *testing.T, l *Login) string {
	t.Helper()
	b, err := l.Token(t.Context())
	require.NoError(t, err)
	return b.Value
}

func TestATokenIsUsedUntilItIsTimeForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loginOf(t, &supplier{})
		assert.Equal(t, "1", value(t, l))
		time.Sleep(47 * time.Minute)
		assert.Equal(t, "1", value(t, l))
		time.Sleep(2 * time.Minute)
		assert.Equal(t, "2", value(t, l))
	})
}

func TestWhoNeedsATokenThatIsKeptFreshDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &supplier{takes: 5 * time.Second}
		l := loginOf(t, s)
		assert.Equal(t, "1", value(t, l))
		ctx, enough := context.WithCancel(t.Context())
		go l.Keep(ctx)
		time.Sleep(48*time.Minute + time.Second)
		began := time.Now()
		assert.Equal(t, "1", value(t, l), "another is being got")
		assert.Equal(t, began, time.Now())
		time.Sleep(time.Minute)
		assert.Equal(t, "2", value(t, l))
		time.Sleep(10 * time.Hour)
		assert.Equal(t, began.Add(10*time.Hour+time.Minute), time.Now())
		enough()
		synctest.Wait()
		assert.Equal(t, 14, s.given)
	})
}

func TestATokenThatCannotBeRenewedIsUsedWhileItIsGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &supplier{}
		l := loginOf(t, s)
		assert.Equal(t, "1", value(t, l))
		s.failed = errors.New("the endpoint is away")
		time.Sleep(59 * time.Minute)
		assert.Equal(t, "1", value(t, l))
		time.Sleep(time.Hour)
		for range 2 { // the second time nobody is asked
			_, err := l.Token(t.Context())
			assert.ErrorIs(t, err, s.failed)
		}
		s.failed = nil
		_, err := l.Token(t.Context())
		assert.Error(t, err, "it is not asked for all the time")
		time.Sleep(renewalPause)
		assert.Equal(t, "2", value(t, l))
	})
}

func TestAFirstTokenThatCannotBeHadIsAnError(t *testing.T) {
	s := &supplier{failed: errors.New("the endpoint is away")}
	_, err := loginOf(t, s).Token(t.Context())
	assert.ErrorIs(t, err, s.failed)
}

func TestATokenMayStandInAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(c map[string]any) {
		require.NoError(t, os.WriteFile(file, []byte(issuers()["p256"].sign(t, jose.ES256, c)+"\n"), 0o600))
	}
	write(saying(map[string]any{"exp": time.Now().Unix() + 3600, "user": "bob"}))
	l, err := NewLogin(told(map[string]string{"sasl.oauthbearer.token.endpoint.url": "file:" + file, "sasl.oauthbearer.sub.claim.name": "user"}, map[string]string{"extension_traceId": "1"}), quiet())
	require.NoError(t, err)
	b, err := l.Token(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "bob", b.Subject)
	assert.Equal(t, map[string]string{"traceId": "1"}, l.Extensions)

	for name, changes := range map[string]map[string]any{
		"nobody's": {"user": nil}, "endless": {"exp": nil}, "ended long ago": {"exp": -1}, "issued long ago": {"iat": -1}, "of a scope twice": {"scope": []string{"a", "a"}},
	} {
		c := saying(map[string]any{"user": "bob"})
		for claim, v := range changes {
			if c[claim] = v; v == nil {
				delete(c, claim)
			}
		}
		write(c)
		_, err = l.obtain(t.Context())
		assert.ErrorContains(t, err, "no token", name)
	}
	require.NoError(t, os.WriteFile(file, []byte(unsigned(noSignature, "{}")), 0o600))
	_, err = l.obtain(t.Context())
	assert.ErrorIs(t, err, errSections)
	require.NoError(t, os.Remove(file))
	_, err = l.obtain(t.Context())
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestExtensionsHaveNamesOfLetters(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{{"traceId", "a b\t1", true}, {"", "a", false}, {"a", "", false}, {"auth", "a", false}, {"a1", "a", false}, {"a", "a\x01b", false}, {"a", "ä", false}} {
		assert.Equal(t, c.want, IsExtension(c.name, c.value), "%q=%q", c.name, c.value)
	}
	_, err := NewUnsecuredLogin(told(nil, map[string]string{"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginExtension_1": "x"}), quiet())
	assert.ErrorContains(t, err, "unsecuredLoginExtension_1")
	l, err := NewUnsecuredLogin(told(nil, map[string]string{"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginExtension_x": "y"}), quiet())
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"x": "y"}, l.Extensions)
}
