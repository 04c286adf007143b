package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/broker/acl"
)

// fake is a cluster that is what a test says, and remembers what it was told to do.
type fake struct {
	mu        sync.Mutex
	snapshot  *cluster.Snapshot
	err       error
	looked    int
	groups    map[string]kadm.DescribedGroup
	read      map[string][]cluster.GroupPartition
	committed map[plan.Partition]int64
	settings  []cluster.DescribedSetting
	records   map[plan.Partition][]*kgo.Record
	acls      []acl.Binding
	aclFault  error
	quotas    []admin.QuotaDescription
	users     []admin.ScramDescription
	did       []string
	refuses   error
}

func (f *fake) tell(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuses != nil {
		return f.refuses
	}
	f.did = append(f.did, fmt.Sprintf(format, args...))
	return nil
}

func (f *fake) deeds() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.did...)
}

func (f *fake) set(s *cluster.Snapshot, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snapshot, f.err = s, err
}

func (f *fake) Snapshot(context.Context, time.Time, bool) (*cluster.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked++
	return f.snapshot, f.err
}

func (f *fake) TopicConfig(context.Context, string) ([]cluster.DescribedSetting, error) {
	return f.settings, nil
}

func (f *fake) BrokerConfig(context.Context, int32) ([]cluster.DescribedSetting, error) {
	return f.settings, nil
}

func (f *fake) Groups(context.Context) ([]cluster.ListedGroup, error) {
	var list []cluster.ListedGroup
	for name, g := range f.groups {
		list = append(list, cluster.ListedGroup{Name: name, State: g.State, Type: "classic"})
	}
	return list, nil
}

func (f *fake) DescribeGroups(context.Context, []string) (kadm.DescribedGroups, error) {
	return f.groups, nil
}

func (f *fake) GroupsPartitions(context.Context, kadm.DescribedGroups) (map[string][]cluster.GroupPartition, map[string]error, error) {
	return f.read, map[string]error{}, nil
}

func (f *fake) Offsets(_ context.Context, partitions []plan.Partition, at int64) (map[plan.Partition]int64, map[plan.Partition]error, error) {
	found := map[plan.Partition]int64{}
	for _, p := range partitions {
		list := f.records[p]
		switch {
		case at == cluster.Earliest:
			found[p] = 0
		case at == cluster.Latest:
			if n := len(list); n > 0 {
				found[p] = list[n-1].Offset + 1
			} else {
				found[p] = 0
			}
		default:
			for _, r := range list {
				if r.Timestamp.UnixMilli() >= at {
					found[p] = r.Offset
					break
				}
			}
		}
	}
	return found, nil, nil
}

func (f *fake) ACLs(context.Context, acl.Filter) ([]acl.Binding, error) { return f.acls, f.aclFault }

func (f *fake) Quotas(context.Context, bool, ...admin.QuotaFilter) ([]admin.QuotaDescription, error) {
	return f.quotas, nil
}

func (f *fake) Users(context.Context, ...string) ([]admin.ScramDescription, error) {
	return f.users, nil
}

func (f *fake) Read(_ context.Context, _ int32, p plan.Partition, from int64, _ int32) (cluster.Piece, error) {
	const piece = 7
	got := cluster.Piece{Next: from}
	for _, r := range f.records[p] {
		if r.Offset >= from && len(got.Records) < piece {
			got.Records, got.Next = append(got.Records, r), r.Offset+1
		}
	}
	return got, nil
}

func (f *fake) Elect(_ context.Context, _ cluster.ElectionType, partitions []plan.Partition) (map[plan.Partition]error, error) {
	return nil, f.tell("elect %v", partitions)
}

func (f *fake) CreateTopic(_ context.Context, spec cluster.TopicSpec, validateOnly bool) error {
	if validateOnly {
		return f.refuses
	}
	return f.tell("create %s %d %d %v", spec.Name, spec.Partitions, spec.ReplicationFactor, spec.Settings)
}

func (f *fake) AlterTopicConfig(_ context.Context, topic string, set []cluster.Setting, remove []string, validateOnly bool) error {
	if validateOnly {
		return f.refuses
	}
	return f.tell("alter %s %v %v", topic, set, remove)
}

func (f *fake) Enlarge(_ context.Context, list []cluster.Enlargement, validateOnly bool) error {
	if validateOnly {
		return f.refuses
	}
	return f.tell("enlarge %v", list)
}

func (f *fake) DeleteTopics(_ context.Context, names []string) error {
	return f.tell("delete %v", names)
}

func (f *fake) Committed(context.Context, string) (map[plan.Partition]int64, error) {
	return f.committed, nil
}

func (f *fake) Scope(context.Context, []string) ([]plan.Partition, error) {
	return nil, errors.New("not asked for here")
}

func (f *fake) NewOffsets(_ context.Context, r cluster.Reset, partitions []plan.Partition, committed map[plan.Partition]int64) (map[plan.Partition]int64, []cluster.Clamped, error) {
	to := map[plan.Partition]int64{}
	for _, p := range partitions {
		to[p] = committed[p] + r.Number
	}
	return to, nil, nil
}

func (f *fake) Commit(_ context.Context, group string, offsets map[plan.Partition]int64) error {
	return f.tell("commit %s %v", group, offsets)
}

func (f *fake) DeleteGroup(_ context.Context, name string) error {
	return f.tell("delete group %s", name)
}

func replicas(ids ...int32) []int32 { return ids }

// threeBrokers is a healthy cluster with a topic of three partitions that a group has read some of.
func threeBrokers() *cluster.Snapshot {
	s := &cluster.Snapshot{Taken: time.Unix(1_800_000_000, 0), Controller: 2, Views: map[int32]cluster.View{}, Silent: map[int32]error{}, Moves: cluster.Moves{}, Dirs: map[int32][]cluster.Dir{}}
	orders := cluster.Topic{Name: "orders", ID: "AAAAAAAAQAGAAAAAAAAAAA", ReplicationFactor: 3, MinISR: 2, Settings: map[string]string{"cleanup.policy": "delete", "retention.ms": "604800000"}}
	for id := int32(1); id <= 3; id++ {
		s.Brokers = append(s.Brokers, cluster.Broker{ID: id, Host: "kafka", Port: 9090 + id})
		s.Views[id] = cluster.View{Controller: 2}
		lead := []int32{id, id%3 + 1, (id+1)%3 + 1}
		orders.Partitions = append(orders.Partitions, cluster.Partition{ID: id - 1, Leader: id, LeaderAlive: true, Replicas: lead, ISR: lead})
		var stored []cluster.DirReplica
		for p := range int32(3) {
			stored = append(stored, cluster.DirReplica{Partition: plan.Partition{Topic: "orders", ID: p}, Size: 1000})
		}
		s.Dirs[id] = []cluster.Dir{{Path: "/data", Total: 100_000, Usable: 40_000, Replicas: stored}}
	}
	s.Topics = []cluster.Topic{orders}
	return s
}

// withoutBroker is the cluster after a broker of it was killed and its session has ended.
func withoutBroker(id int32) *cluster.Snapshot {
	s := threeBrokers()
	s.Brokers = s.Brokers[:0:0]
	for other := int32(1); other <= 3; other++ {
		if other != id {
			s.Brokers = append(s.Brokers, cluster.Broker{ID: other, Host: "kafka", Port: 9090 + other})
		}
	}
	delete(s.Views, id)
	delete(s.Dirs, id)
	for i := range s.Topics[0].Partitions {
		p := &s.Topics[0].Partitions[i]
		isr := []int32{}
		for _, other := range p.Replicas {
			if other != id {
				isr = append(isr, other)
			}
		}
		p.ISR, p.Offline = isr, replicas(id)
		if p.Leader == id {
			p.Leader = isr[0]
		}
	}
	return s
}

func group3() kadm.DescribedGroup {
	return kadm.DescribedGroup{Group: "billing", State: "Empty", ProtocolType: "consumer", Coordinator: kadm.BrokerDetail{NodeID: 1, Host: "kafka", Port: 9091}}
}

func newFake() *fake {
	f := &fake{snapshot: threeBrokers(), groups: map[string]kadm.DescribedGroup{"billing": group3()}, records: map[plan.Partition][]*kgo.Record{}}
	var read []cluster.GroupPartition
	f.committed = map[plan.Partition]int64{}
	for p := range int32(3) {
		key := plan.Partition{Topic: "orders", ID: p}
		read = append(read, cluster.GroupPartition{Partition: key, Current: 10, End: 15})
		f.committed[key] = 10
	}
	f.read = map[string][]cluster.GroupPartition{"billing": read}
	value := "604800000"
	f.settings = []cluster.DescribedSetting{{Name: "retention.ms", Value: &value, Source: kmsg.ConfigSourceDynamicTopicConfig, Type: "LONG", Doc: "for how long"}}
	return f
}

// served is a console over a fake cluster, in a server on a loopback address.
type served struct {
	t       *testing.T
	console *Console
	server  *httptest.Server
	fake    *fake
}

func serve(t *testing.T, f *fake, users Users) *served {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := newConsole(Config{Cluster: f, Bootstrap: "kafka:9091", Users: users, Version: "test", Log: logrus.NewEntry(log)})
	require.NoError(t, err)
	c.guard.local = true
	s := &served{t, c, httptest.NewServer(c.handler()), f}
	t.Cleanup(func() {
		c.stop()
		s.server.Close()
		c.close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

// answer is what came back.
type answer struct {
	code   int
	header http.Header
	body   string
}

func (s *served) ask(method, path string, form url.Values, change func(r *http.Request)) answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.server.URL+path, strings.NewReader(form.Encode()))
	require.NoError(s.t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultTransport.RoundTrip(r) // follows nothing
	require.NoError(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return answer{resp.StatusCode, resp.Header, string(body)}
}

func (s *served) get(path string) answer {
	s.t.Helper()
	return s.ask(http.MethodGet, path, nil, nil)
}

// page is a page that has to be there.
func (s *served) page(path string) string {
	s.t.Helper()
	a := s.get(path)
	require.Equal(s.t, http.StatusOK, a.code, "%s: %s", path, a.body)
	return a.body
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// post fills in a form's token and sends it.
func (s *served) post(path string, form url.Values) answer {
	s.t.Helper()
	found := tokenField.FindStringSubmatch(s.page("/do/create-topic"))
	require.NotNil(s.t, found)
	form.Set("token", found[1])
	return s.ask(http.MethodPost, path, form, nil)
}
