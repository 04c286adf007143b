package console

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
)

func TestAPreviewDoesNothingAndShowsTheCommandLine(t *testing.T) {
	f := newFake()
	s := serve(t, f, nil)
	a := s.post("/do/create-topic", url.Values{"topic": {"fresh"}, "partitions": {"4"}, "settings": {"retention.ms=1000\r\ncleanup.policy=compact,delete"}, "step": {"preview"}})
	assert.Equal(t, http.StatusOK, a.code)
	assert.Contains(t, a.body, "barnabas topic create fresh --partitions 4 --config retention.ms=1000 --config cleanup.policy=compact,delete --bootstrap-server kafka:9091")
	assert.Contains(t, a.body, "kafka-topics.sh --bootstrap-server kafka:9091 --create --topic fresh --partitions 4")
	assert.Empty(t, f.deeds())
	a = s.post("/do/create-topic", url.Values{"topic": {"fresh"}, "partitions": {"4"}, "step": {"do"}})
	assert.Equal(t, http.StatusSeeOther, a.code)
	assert.Equal(t, "/topic?name=fresh", a.header.Get("Location"))
	assert.Equal(t, []string{"create fresh 4 -1 []"}, f.deeds())
	assert.Contains(t, s.page("/"), "created topic fresh <span class=\"dim\">by this machine</span>")
}

func TestWhatBrokersRefuseIsToldBesideTheForm(t *testing.T) {
	f := newFake()
	f.refuses = errors.New("Invalid config value for resource")
	a := serve(t, f, nil).post("/do/topic-config", url.Values{"topic": {"orders"}, "setting": {"retention.ms"}, "value": {"soon"}, "step": {"preview"}})
	assert.Equal(t, http.StatusUnprocessableEntity, a.code)
	assert.Contains(t, a.body, "Invalid config value for resource")
	assert.Contains(t, a.body, `value="soon"`, "what was typed is still there")
}

func TestDeletingNeedsTheNameTyped(t *testing.T) {
	f := newFake()
	s := serve(t, f, nil)
	for path, form := range map[string]url.Values{"/do/delete-topic": {"topic": {"orders"}}, "/do/delete-group": {"group": {"billing"}}} {
		form.Set("step", "do")
		form.Set("typed", "order")
		a := s.post(path, form)
		assert.Equal(t, http.StatusOK, a.code, path)
		assert.Contains(t, a.body, "what was typed is not")
	}
	assert.Empty(t, f.deeds())
	a := s.post("/do/delete-topic", url.Values{"topic": {"orders"}, "step": {"preview"}})
	assert.Contains(t, a.body, "Group billing (Empty) reads it.")
	assert.Equal(t, http.StatusSeeOther, s.post("/do/delete-group", url.Values{"group": {"billing"}, "step": {"do"}, "typed": {"billing"}}).code)
	assert.Equal(t, []string{"delete group billing"}, f.deeds())
}

func TestAResetSetsWhatItsPreviewShowed(t *testing.T) {
	f := newFake()
	s := serve(t, f, nil)
	form := url.Values{"group": {"billing"}, "way": {"shift-by"}, "value": {"-4"}, "step": {"preview"}}
	a := s.post("/do/reset-offsets", form)
	require.Equal(t, http.StatusOK, a.code, a.body)
	assert.Contains(t, a.body, "3 partitions of group billing would be set: 12 offsets are read again, 0 are passed over.")
	assert.Contains(t, a.body, "barnabas group reset billing --all-topics --shift-by -4 --bootstrap-server kafka:9091")
	settled := regexp.MustCompile(`name="settle" value="([^"]*)"`).FindStringSubmatch(a.body)
	require.NotNil(t, settled)
	assert.Equal(t, "orders,0,6\norders,1,6\norders,2,6\n", settled[1])
	for at := range f.committed {
		f.committed[at] = 14 // somebody has been here meanwhile
	}
	form.Set("step", "do")
	form.Set("settle", settled[1])
	assert.Equal(t, http.StatusSeeOther, s.post("/do/reset-offsets", form).code)
	assert.Equal(t, []string{"commit billing map[orders-0:6 orders-1:6 orders-2:6]"}, f.deeds())
}

func TestALiveGroupIsNotTouched(t *testing.T) {
	f := newFake()
	g := group3()
	g.State, g.Members = "Stable", []kadm.DescribedGroupMember{{MemberID: "m", ClientID: "till", ClientHost: "/10.0.0.7"}}
	f.groups["billing"] = g
	s := serve(t, f, nil)
	for path, form := range map[string]url.Values{
		"/do/reset-offsets": {"group": {"billing"}, "way": {"to-earliest"}, "settle": {"orders,0,0\n"}},
		"/do/delete-group":  {"group": {"billing"}, "typed": {"billing"}},
	} {
		form.Set("step", "do")
		a := s.post(path, form)
		assert.Equal(t, http.StatusUnprocessableEntity, a.code, path)
		assert.Contains(t, a.body, "stop its members first: till (/10.0.0.7)")
	}
	assert.Empty(t, f.deeds())
}

func TestOnlyReplicasInSyncAreElected(t *testing.T) {
	f := newFake()
	f.set(withoutBroker(3), nil) // led orders-2, and is not in sync
	s := serve(t, f, nil)
	assert.Equal(t, http.StatusUnprocessableEntity, s.post("/do/elect", url.Values{"step": {"do"}}).code)
	back := threeBrokers()
	back.Topics[0].Partitions[2].Leader = 1
	f.set(back, nil)
	s.console.changed()
	assert.Equal(t, http.StatusSeeOther, s.post("/do/elect", url.Values{"step": {"do"}}).code)
	assert.Equal(t, []string{"elect [orders-2]"}, f.deeds())
}

func TestCommandLinesAreQuotedForAShell(t *testing.T) {
	assert.Equal(t, `barnabas group delete 'a b; rm -rf /' 'it'\''s' ''`, command("barnabas", "group", "delete", "a b; rm -rf /", "it's", ""))
}
