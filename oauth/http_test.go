package oauth

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const patience = 2 * time.Minute // a machine may be busy

// serve answers on a loopback address.
func serve(t testing.TB, handler http.HandlerFunc) string {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

func TestAClientGetsATokenForItsOwnCredentials(t *testing.T) {
	token := issuers()["p256"].sign(t, jose.ES256, saying(map[string]any{"exp": time.Now().Unix() + 3600}))
	var asked atomic.Int32
	where := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, secret, _ := r.BasicAuth()
		assert.Equal(t, "POST app s=cret application/x-www-form-urlencoded", strings.Join([]string{r.Method, user, secret, r.Header.Get("Content-Type")}, " "))
		assert.NoError(t, r.ParseForm())
		assert.Equal(t, url.Values{"grant_type": {"client_credentials"}, "scope": {"a b"}}, r.PostForm)
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `{"token_type":"Bearer","access_token":"%s","expires_in":1}`, token)
	})
	l, err := NewLogin(told(map[string]string{"sasl.oauthbearer.token.endpoint.url": where, "sasl.login.retry.backoff.ms": "1", "sasl.login.retry.backoff.max.ms": "60000"},
		map[string]string{"clientId": " app", "clientSecret": "s=cret ", "scope": "a b"}), quiet())
	require.NoError(t, err)
	b, err := l.Token(t.Context())
	require.NoError(t, err)
	assert.Equal(t, token, b.Value)
	assert.Equal(t, "alice", b.Subject)
	assert.EqualValues(t, 2, asked.Load(), "what may pass is tried again")
}

func TestCredentialsMayBeEscapedInTheHeader(t *testing.T) {
	var header string
	where := serve(t, func(_ http.ResponseWriter, r *http.Request) { _, header, _ = r.BasicAuth() })
	set := map[string]string{"sasl.oauthbearer.token.endpoint.url": where, "sasl.oauthbearer.header.urlencode": "true"}
	l, err := NewLogin(told(set, map[string]string{"clientId": "app", "clientSecret": "a b:c"}), quiet())
	require.NoError(t, err)
	_, err = l.Token(t.Context())
	assert.ErrorContains(t, err, "no access_token")
	assert.Equal(t, "a+b%3Ac", header)
}

func TestARefusalOfTheEndpointIsToldWithoutSecrets(t *testing.T) {
	var asked atomic.Int32
	where := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":"invalid_client","error_description":"who\nare you"}`)
	})
	l, err := NewLogin(told(map[string]string{"sasl.oauthbearer.token.endpoint.url": where}, map[string]string{"clientId": "app", "clientSecret": "s3cret"}), quiet())
	require.NoError(t, err)
	_, err = l.Token(t.Context())
	require.ErrorContains(t, err, `HTTP status 401: "invalid_client" "who\nare you"`)
	assert.NotContains(t, err.Error(), "s3cret")
	assert.EqualValues(t, 1, asked.Load(), "it would be the same again")
}

func TestAnAnswerWithoutEndIsNotReadToItsEnd(t *testing.T) {
	where := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	u, err := url.Parse(where)
	require.NoError(t, err)
	c, err := told(nil, nil).caller(u, patience, patience)
	require.NoError(t, err)
	_, err = c.get(t.Context(), where)
	assert.ErrorContains(t, err, "larger than")
}

// keyServer publishes keys that may change, or does not answer.
type keyServer struct {
	document atomic.Pointer[[]byte]
	asked    atomic.Int32
}

func (s *keyServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.asked.Add(1)
	text := s.document.Load()
	if text == nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(*text)
}

func (s *keyServer) publish(t *testing.T, ids ...string) {
	text := published(t, ids...)
	s.document.Store(&text)
}

// keep keeps keys fresh until the test ends.
func keep(t *testing.T, k *Keys) {
	ctx, enough := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { k.Keep(ctx); close(ended) }()
	t.Cleanup(func() { enough(); <-ended })
}

func TestAKeyThatIsNewIsFetchedWhenATokenNamesIt(t *testing.T) {
	s := &keyServer{}
	s.publish(t, "p256")
	k, err := ReadKeys(t.Context(), told(map[string]string{"sasl.oauthbearer.jwks.endpoint.url": serve(t, s.ServeHTTP)}, nil), quiet())
	require.NoError(t, err)
	keep(t, k)
	for range 10 {
		_, err = k.find(jose.ES256, "p256")
		require.NoError(t, err)
	}
	assert.EqualValues(t, 1, s.asked.Load(), "who asks for a key that is there causes no question")
	s.publish(t, "other")
	require.Eventually(t, func() bool {
		_, err := k.find(jose.ES256, "other")
		return err == nil
	}, patience, time.Millisecond)
	_, err = k.find(jose.ES256, "p256")
	assert.Error(t, err)
}

func TestWhoNamesKeysThatNobodyHasCausesFewQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		k := &Keys{where: &url.URL{Scheme: schemeHTTP}, interval: time.Hour, wanted: make(chan struct{}, 1), log: quiet(), fetch: func(context.Context) ([]byte, error) {
			asked++
			return []byte(`{"keys":[]}`), nil
		}}
		require.NoError(t, k.read(t.Context()))
		ctx, enough := context.WithCancel(t.Context())
		go k.Keep(ctx)
		for range 1000 { // for a hundred seconds
			_, err := k.find(jose.ES256, "x")
			require.Error(t, err)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(90 * time.Minute)
		enough()
		synctest.Wait()
		assert.Equal(t, 1+10+1+1, asked, "at first, each ten seconds, for what was named last, and when an hour was over")
	})
}

func TestKeysAreReadAgainFromTimeToTime(t *testing.T) {
	s := &keyServer{}
	s.publish(t, "p256")
	k, err := ReadKeys(t.Context(), told(map[string]string{"sasl.oauthbearer.jwks.endpoint.url": serve(t, s.ServeHTTP), "sasl.oauthbearer.jwks.endpoint.refresh.ms": "1",
		"sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "1", "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "2"}, nil), quiet())
	require.NoError(t, err)
	keep(t, k)
	s.document.Store(nil)
	failed := s.asked.Load()
	require.Eventually(t, func() bool { return s.asked.Load() > failed+3 }, patience, time.Millisecond)
	_, err = k.find(jose.ES256, "p256")
	assert.NoError(t, err, "what was read before stays in use")
	s.publish(t, "other")
	require.Eventually(t, func() bool { _, there := k.set.Load().find(jose.ES256, "other"); return there }, patience, time.Millisecond)
}

func TestKeysMayStandInAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	require.NoError(t, os.WriteFile(file, published(t, "p256"), 0o600))
	k, err := ReadKeys(t.Context(), told(map[string]string{"sasl.oauthbearer.jwks.endpoint.url": "file://" + file}, nil), quiet())
	require.NoError(t, err)
	k.Keep(t.Context()) // there is nothing to do
	_, err = k.find(jose.ES256, "p256")
	assert.NoError(t, err)
}

func TestKeysThatCannotBeReadAtTheStartAreAnError(t *testing.T) {
	url := "sasl.oauthbearer.jwks.endpoint.url"
	failing := serve(t, (&keyServer{}).ServeHTTP)
	for want, set := range map[string]map[string]string{
		"is not set": {}, "HTTP status 500": {url: failing}, "no such file": {url: "file:///none"}, "names no file": {url: "file:"}, "none of file, http, https": {url: "ftp://host/x"},
		"names no host": {url: "http:///x"}, "refresh.ms: 0 is too often": {url: failing, "sasl.oauthbearer.jwks.endpoint.refresh.ms": "0"},
		`refresh.ms: "x" is no whole`: {url: failing, "sasl.oauthbearer.jwks.endpoint.refresh.ms": "x"}, "is less than": {url: failing, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "1"},
	} {
		_, err := ReadKeys(t.Context(), told(set, nil), quiet())
		assert.ErrorContains(t, err, want)
	}
	c := told(map[string]string{url: failing}, nil)
	c.AllowedURLs = []string{failing + "/keys"}
	_, err := ReadKeys(t.Context(), c, quiet())
	assert.ErrorContains(t, err, "allowed.urls")
}

func TestOptionsSayWhomToTrustOverHTTPS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(published(t, "p256")) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // who does not trust it is expected
	s.StartTLS()
	t.Cleanup(s.Close)
	set := map[string]string{"sasl.oauthbearer.jwks.endpoint.url": s.URL}
	_, err := ReadKeys(t.Context(), told(set, nil), quiet())
	assert.ErrorContains(t, err, "certificate")
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	_, err = ReadKeys(t.Context(), told(set, map[string]string{"ssl.truststore.type": "PEM", "ssl.truststore.location": file}), quiet())
	assert.NoError(t, err)
}
