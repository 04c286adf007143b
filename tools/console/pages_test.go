package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func TestAHealthyClusterIsSaidToBeHealthy(t *testing.T) {
	body := serve(t, newFake(), nil).page("/")
	assert.Contains(t, body, "Healthy: 3 brokers answering, 1 topic, 3 partitions, and every replica in sync.")
	assert.Contains(t, body, `class="verdict good"`)
	assert.Contains(t, body, `<span class="tag">controller</span>`)
	assert.Contains(t, body, "nobody reads, and there is lag")
}

func TestABrokerThatLeftIsTheFirstSentence(t *testing.T) {
	f := newFake()
	s := serve(t, f, nil)
	s.page("/")
	f.set(withoutBroker(3), nil)
	s.console.changed()
	body := s.page("/")
	assert.Contains(t, body, "Degraded: broker 3 is not registered and has replicas of 3 partitions")
	assert.Contains(t, body, "broker 3 left the in-sync replicas of orders-0, orders-1, orders-2")
	assert.Contains(t, body, "broker 3 is not registered any more")
	assert.Contains(t, s.page("/topic?name=orders"), `<span class="replica offline" title="broker 3 or its directory is out of use">3<i>✕</i></span>`)
	assert.Contains(t, s.page("/brokers"), "Broker 3 has replicas and is not registered.")
	assert.Contains(t, s.page("/broker?id=1"), "Do not stop it now: 3 partitions would refuse acks=all.")
}

func TestABrokerThatKeepsNothingBackIsSafeToStop(t *testing.T) {
	assert.Contains(t, serve(t, newFake(), nil).page("/broker?id=2"), "Safe to stop")
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	s := serve(t, newFake(), nil)
	for path, code := range map[string]int{"/topic?name=nope": 404, "/group?name=nope": 404, "/broker?id=9": 404, "/broker?id=x": 400, "/nope": 404, "/topic/messages?name=orders&from=nowhere": 400, "/topic/messages?name=orders&partition=7": 400} {
		assert.Equal(t, code, s.get(path).code, path)
	}
}

func TestAClusterThatDoesNotAnswerIsAPageToo(t *testing.T) {
	f := newFake()
	f.set(nil, errors.New("unable to dial: connection refused"))
	a := serve(t, f, nil).get("/")
	assert.Equal(t, http.StatusServiceUnavailable, a.code)
	assert.Contains(t, a.body, "No broker answered.")
}

func TestThousandsOfTopicsAreShortPages(t *testing.T) {
	f := newFake()
	for i := range 5000 {
		f.snapshot.Topics = append(f.snapshot.Topics, cluster.Topic{Name: fmt.Sprintf("topic-%04d", i), ReplicationFactor: 1, Partitions: []cluster.Partition{{Leader: 1, LeaderAlive: true, Replicas: replicas(1), ISR: replicas(1)}}})
	}
	s := serve(t, f, nil)
	body := s.page("/topics")
	assert.Less(t, len(body), 64<<10)
	assert.Equal(t, rowsPerPage, strings.Count(body, `<tr id="topic-`))
	assert.Contains(t, body, "1–100 of 5\u202f001")
	assert.Contains(t, body, `href="/topics?page=2"`)
	last := s.page("/topics?page=51&q=topic")
	assert.Contains(t, last, "topic-4999")
	assert.NotContains(t, last, `data-testid="next"`)
	found := s.page("/topics?q=PIC-4+998")
	assert.Contains(t, found, "topic-4998")
	assert.Equal(t, 1, strings.Count(found, `<tr id="topic-`))
	assert.Contains(t, s.page("/topics?page=999"), "topic-4999", "a page beyond the end is the last")
}

func TestChipsLeaveWhatTheySay(t *testing.T) {
	f := newFake()
	f.set(withoutBroker(2), nil)
	s := serve(t, f, nil)
	assert.Contains(t, s.page("/topics?chip=under-replicated"), `id="topic-orders"`)
	assert.NotContains(t, s.page("/topics?chip=internal"), `id="topic-orders"`)
	assert.Contains(t, s.page("/groups?chip=empty"), `id="group-billing"`)
	assert.NotContains(t, s.page("/groups?q=nobody"), `id="group-billing"`)
}

func TestAGroupShowsItsLagAndWhyOneIsNotKnown(t *testing.T) {
	f := newFake()
	f.read["billing"] = append(f.read["billing"], cluster.GroupPartition{Partition: plan.Partition{Topic: "orders", ID: 9}, Current: -1, End: 4})
	body := serve(t, f, nil).page("/group?name=billing")
	assert.Contains(t, body, "15 behind: nobody reads, and there is lag.")
	assert.Contains(t, body, "not known: no_commit")
	assert.Contains(t, body, `data-testid="lag-chart"`)
}

func TestMovesShowWhatIsCopied(t *testing.T) {
	f := newFake()
	p := plan.Partition{Topic: "orders", ID: 0}
	f.snapshot.Moves = cluster.Moves{p: {Replicas: replicas(1, 2, 3), Adding: replicas(3), Removing: replicas(2)}}
	f.snapshot.Dirs[3][0].Replicas[0].Size = 250
	body := serve(t, f, nil).page("/moves")
	assert.Contains(t, body, "1 partition moves, 750 B still to copy")
	assert.Contains(t, body, "25%")
}

func TestTheDoctorSaysWhatToDo(t *testing.T) {
	f := newFake()
	f.snapshot.Topics[0].MinISR = 3
	body := serve(t, f, nil).page("/doctor")
	assert.Contains(t, body, "min.insync.replicas")
	assert.Contains(t, body, "barnabas topic alter --bootstrap-server kafka:9091 --config min.insync.replicas=2 orders")
}

func TestTheJSONIsThatOfTheNativeTools(t *testing.T) {
	f := newFake()
	s := serve(t, f, nil)
	fields := map[string][]string{
		"/api/v1/cluster": {"version", "controller", "brokers"},
		"/api/v1/topics":  {"version", "topics"},
		"/api/v1/groups":  {"version", "groups"},
		"/api/v1/health":  {"version", "healthy", "controller", "brokers_registered", "brokers_answering", "counts", "findings", "not_judged"},
	}
	for path, want := range fields {
		a := s.get(path)
		assert.Equal(t, http.StatusOK, a.code, path)
		assert.Equal(t, "application/json; charset=utf-8", a.header.Get("Content-Type"))
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(a.body), &got), path)
		for _, name := range want {
			assert.Contains(t, got, name, path)
		}
	}
	f.set(withoutBroker(1), nil)
	s.console.changed()
	assert.Equal(t, http.StatusServiceUnavailable, s.get("/api/v1/health").code, "for who looks at the status alone")
}

func TestHealthzNeedsNoClusterAndReadyzTellsWhatIsMissing(t *testing.T) {
	f := newFake()
	f.set(nil, errors.New("unable to dial"))
	s := serve(t, f, nil)
	assert.Equal(t, http.StatusOK, s.get("/healthz").code)
	assert.Equal(t, http.StatusOK, s.get("/readyz").code)
	s.console.Ready = func() error { return errors.New("not registered") }
	a := s.get("/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, a.code)
	assert.Equal(t, "not registered\n", a.body)
	f.mu.Lock()
	defer f.mu.Unlock()
	assert.Zero(t, f.looked, "who only asks whether it lives costs the brokers nothing")
}
