package console

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

const hostile = `<script>alert(1)</script>"><img src=x onerror=alert(2)>` + "\x1b[31m\x00"

// names of topics are checked by brokers; all other names and all contents come from strangers.
func TestWhatStrangersWroteIsShownAndNotRun(t *testing.T) {
	f := newFake()
	member := kadm.DescribedGroupMember{MemberID: hostile, ClientID: hostile, ClientHost: hostile}
	g := group3()
	g.State, g.Members = "Stable", []kadm.DescribedGroupMember{member}
	f.groups = map[string]kadm.DescribedGroup{hostile: g}
	at := plan.Partition{Topic: "orders", ID: 0}
	f.read = map[string][]cluster.GroupPartition{hostile: {{Partition: at, Current: 1, End: 5, Member: &member}}}
	value := hostile
	f.settings[0].Value = &value
	f.settings[0].Doc = hostile
	f.records[at] = []*kgo.Record{{Topic: "orders", Key: []byte(hostile), Value: []byte(hostile), Headers: []kgo.RecordHeader{{Key: hostile, Value: []byte(hostile)}}, Timestamp: time.Unix(1, 0)}}
	f.snapshot.Silent[3] = assert.AnError
	f.snapshot.Unread = []string{hostile}
	s := serve(t, f, nil)
	seen := 0
	for _, path := range []string{"/", "/brokers", "/broker?id=1", "/topics", "/topics?q=" + url.QueryEscape(hostile), "/topic?name=orders", "/topic/config?name=orders", "/topic/groups?name=orders",
		"/topic/messages?name=orders", "/topic/messages?name=orders&text=" + url.QueryEscape("<script"), "/groups", "/group?name=" + url.QueryEscape(hostile), "/moves", "/doctor",
		"/do/reset-offsets?group=" + url.QueryEscape(hostile), "/do/topic-config?topic=orders&setting=retention.ms"} {
		body := s.page(path)
		for _, raw := range []string{"<script>alert", "<img", "\x1b", "\x00"} {
			assert.False(t, strings.Contains(body, raw), "%s has %q", path, raw)
		}
		seen += strings.Count(body, "&lt;script&gt;alert(1)")
	}
	assert.Greater(t, seen, 20, "the names were on the pages at all")
	a := s.get("/api/v1/groups")
	assert.Equal(t, "application/json; charset=utf-8", a.header.Get("Content-Type"))
	assert.NotContains(t, a.body, "<script>")
}

func TestAnswersForbidWhatTheyDoNotNeed(t *testing.T) {
	s := serve(t, newFake(), nil)
	for _, path := range []string{"/", "/api/v1/health", "/static/console.js", "/nope", "/topic/messages?name=orders&format=json"} {
		h := s.get(path).header
		assert.Contains(t, h.Get("Content-Security-Policy"), "default-src 'self'", path)
		assert.NotContains(t, h.Get("Content-Security-Policy"), "unsafe", path)
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
		assert.Equal(t, "DENY", h.Get("X-Frame-Options"), path)
	}
	body := s.page("/topic?name=orders")
	assert.NotRegexp(t, `(?i)<script(?: [^>]*)?>[^<]`, body, "no script in pages")
	assert.NotRegexp(t, `(?i)\son[a-z]+=`, body)
	assert.NotRegexp(t, `(?i)\sstyle=`, body)
	assert.NotRegexp(t, `(?:src|href)="(?:https?:)?//`, body, "nothing from elsewhere")
}

func TestAFormFromElsewhereDoesNothing(t *testing.T) {
	f := newFake()
	s := serve(t, f, nil)
	token := tokenField.FindStringSubmatch(s.page("/do/create-topic"))[1]
	form := func(token string) url.Values {
		return url.Values{"topic": {"orders"}, "typed": {"orders"}, "step": {"do"}, "token": {token}}
	}
	post := func(form url.Values, name, value string) int {
		return s.ask(http.MethodPost, "/do/delete-topic", form, func(r *http.Request) {
			if name != "" {
				r.Header.Set(name, value)
			}
		}).code
	}
	assert.Equal(t, http.StatusForbidden, post(form(""), "", ""), "no token")
	assert.Equal(t, http.StatusForbidden, post(form(token+"x"), "", ""), "another token")
	assert.Equal(t, http.StatusForbidden, post(form(token), "Origin", "http://evil.example"), "another origin")
	assert.Equal(t, http.StatusForbidden, post(form(token), "Sec-Fetch-Site", "cross-site"), "another site")
	assert.Equal(t, http.StatusForbidden, post(form(token), "Origin", "null"), "a sandbox")
	assert.Empty(t, f.deeds())
	assert.Equal(t, http.StatusSeeOther, post(form(token), "Origin", s.server.URL))
	assert.Equal(t, []string{"delete [orders]"}, f.deeds())
}

func TestAPageOfTheWebCannotReadAlongByANameOfItsOwn(t *testing.T) {
	s := serve(t, newFake(), nil)
	for host, code := range map[string]int{"evil.example": 421, "evil.example:8092": 421, "localhost:8092": 200, "127.0.0.1": 200, "[::1]:8092": 200, "192.168.0.7": 421} {
		a := s.ask(http.MethodGet, "/", nil, func(r *http.Request) { r.Host = host })
		assert.Equal(t, code, a.code, host)
	}
}

func TestWithoutUsersStrangersReadOnlyAndNoRecords(t *testing.T) {
	f := newFake()
	s := serve(t, f, nil)
	s.console.guard.local = false
	body := s.page("/topic?name=orders")
	assert.NotContains(t, body, "/do/")
	assert.NotContains(t, body, "/topic/messages")
	assert.Contains(t, body, "read-only")
	assert.Equal(t, http.StatusForbidden, s.get("/topic/messages?name=orders").code)
	assert.Equal(t, http.StatusForbidden, s.get("/do/delete-topic?topic=orders").code)
	assert.Equal(t, http.StatusForbidden, s.ask(http.MethodPost, "/do/delete-topic", url.Values{"topic": {"orders"}, "step": {"do"}, "typed": {"orders"}}, nil).code)
	assert.Empty(t, f.deeds())
}

func TestViewersReadAndOperatorsAct(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	require.NoError(t, os.WriteFile(path, []byte("# who may come\nvera:viewer:see:it\nolga:operator:do-it\n"), 0o600))
	users, err := ReadUsers(path)
	require.NoError(t, err)
	s := serve(t, newFake(), users)
	as := func(name, password, path string) int {
		clear(s.console.guard.tries.until) // as if the time were over
		return s.ask(http.MethodGet, path, nil, func(r *http.Request) { r.SetBasicAuth(name, password) }).code
	}
	assert.Equal(t, http.StatusUnauthorized, s.get("/").code)
	assert.Equal(t, http.StatusUnauthorized, s.get("/events?view=/").code)
	assert.Equal(t, http.StatusUnauthorized, s.get("/api/v1/topics").code)
	assert.Equal(t, http.StatusUnauthorized, as("vera", "wrong", "/"))
	assert.Equal(t, http.StatusUnauthorized, as("nobody", "", "/"))
	assert.Equal(t, http.StatusOK, as("vera", "see:it", "/topic/messages?name=orders"))
	assert.Equal(t, http.StatusForbidden, as("vera", "see:it", "/do/create-topic"))
	assert.Equal(t, http.StatusOK, as("olga", "do-it", "/do/create-topic"))
	assert.NotEqual(t, s.console.guard.token(user{name: "vera"}), s.console.guard.token(user{name: "olga"}), "a viewer's token is no operator's")
}

func TestAfterAWrongPasswordARightOneIsNotLookedAtForAWhile(t *testing.T) {
	now := time.Unix(1000, 0)
	guesses := tries{until: map[netip.Prefix]time.Time{}}
	wrong, right := func() bool { return false }, func() bool { return true }
	here, elsewhere := placeOf("192.0.2.1:1000"), placeOf("192.0.2.2:1000")
	for _, step := range []struct {
		from          netip.Prefix
		at            time.Duration
		check         func() bool
		right, looked bool
	}{
		{here, 0, right, true, true},
		{here, 0, wrong, false, true},
		{here, afterWrong - 1, right, false, false},
		{elsewhere, afterWrong - 1, right, true, true},
		{here, afterWrong, wrong, false, true},
		{here, 2 * afterWrong, right, true, true},
	} {
		isRight, looked := guesses.look(step.from, now.Add(step.at), step.check)
		assert.Equal(t, step.right, isRight, step)
		assert.Equal(t, step.looked, looked, step)
	}
	assert.Equal(t, placeOf("192.0.2.1:1000"), placeOf("[::ffff:192.0.2.1]:2000"))
	assert.Equal(t, placeOf("[2001:db8::1]:1000"), placeOf("[2001:db8::2]:1000"))
	assert.NotEqual(t, placeOf("[2001:db8::1]:1000"), placeOf("[2001:db8:0:1::1]:1000"))

	for n := range 2 * mostGuesser {
		guesses.look(placeOf(fmt.Sprintf("10.0.%d.%d:1", n/256, n%256)), now, wrong)
	}
	assert.Len(t, guesses.until, mostGuesser)
	_, looked := guesses.look(elsewhere, now, right)
	assert.False(t, looked)
	isRight, _ := guesses.look(elsewhere, now.Add(afterWrong), right)
	assert.True(t, isRight)
}

func TestWhoGuessesIsToldToComeLater(t *testing.T) {
	s := serve(t, newFake(), Users{"olga": {password: sha256.Sum256([]byte("do-it")), operator: true}})
	s.console.guard.tries.until[placeOf("127.0.0.1:1")] = time.Now().Add(time.Hour)
	a := s.ask(http.MethodGet, "/", nil, func(r *http.Request) { r.SetBasicAuth("olga", "do-it") })
	assert.Equal(t, http.StatusTooManyRequests, a.code)
	assert.Equal(t, "1", a.header.Get("Retry-After"))
}

func TestAUsersFileWithAMistakeIsRefused(t *testing.T) {
	for _, text := range []string{"", "# nobody\n", "vera:viewer\n", "vera:admin:x\n", "vera:viewer:\n", ":viewer:x\n", "a:viewer:x\na:operator:y\n"} {
		path := filepath.Join(t.TempDir(), "users")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := ReadUsers(path)
		assert.Error(t, err, "%q", text)
	}
	users, err := ReadUsers("")
	require.NoError(t, err)
	assert.Nil(t, users)
}

func TestTooMuchIsRefused(t *testing.T) {
	s := serve(t, newFake(), nil)
	assert.Equal(t, http.StatusRequestURITooLong, s.get("/topics?q="+strings.Repeat("x", maxURL)).code)
	assert.Equal(t, http.StatusForbidden, s.ask(http.MethodPost, "/do/create-topic", url.Values{"topic": {strings.Repeat("x", maxBody)}}, nil).code)
}
