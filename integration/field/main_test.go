package field

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	shared.end()
	os.Exit(code)
}

// shared are the brokers that tests use together, each test with topics of its own. They start when they are first wanted.
var shared = &process{}

// process lives as long as the test binary: what needs a test's end to be tidied away is tidied away at its own.
type process struct {
	testing.TB
	mu       sync.Mutex
	cleanups []func()
}

func (p *process) Helper()                   {}
func (p *process) Name() string              { return "brokers for all tests" }
func (p *process) Failed() bool              { return false }
func (p *process) Logf(f string, a ...any)   { fmt.Printf(f+"\n", a...) }
func (p *process) Error(a ...any)            { panic(fmt.Sprint(a...)) }
func (p *process) Errorf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (p *process) Fatal(a ...any)            { panic(fmt.Sprint(a...)) }
func (p *process) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (p *process) FailNow()                  { panic("a broker for all tests could not be started") }

func (p *process) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

func (p *process) TempDir() string {
	dir, err := os.MkdirTemp("", "barnabas-field-")
	if err != nil {
		panic(err)
	}
	p.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (p *process) end() {
	for i := len(p.cleanups) - 1; i >= 0; i-- {
		p.cleanups[i]()
	}
}

const apacheVersion = "3.9.1"

var settingsOfAll = map[string]string{
	"zookeeper.session.timeout.ms": "30000", // nobody is killed here, and a busy machine may hold a JVM up
	"log.retention.ms":             "-1",    // many records here are of 1970, and half a minute after its start a broker looks for what is too old
	"auto.create.topics.enable":    "true", "num.partitions": "1", "offsets.topic.num.partitions": "1",
	"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1", "transaction.state.log.num.partitions": "1",
}

var ours = sync.OnceValue(func() *cluster.Cluster {
	return cluster.Start(shared, zktest.Embedded(shared).Addr(), 1, settingsOfAll)
})

var apache = sync.OnceValue(func() *cluster.Cluster {
	return cluster.StartProgram(shared, cluster.Kafka(apacheVersion), zktest.Embedded(shared).Addr(), 1, settingsOfAll, func(int) map[string]string { return nil })
})

// eachBroker runs a test on a broker of ours and, where it can run, on Apache Kafka's.
func eachBroker(t *testing.T, test func(t *testing.T, addr string)) {
	t.Helper()
	t.Run("barnabas", func(t *testing.T) { test(t, ours().Brokers[0].Addr) })
	t.Run("apache", func(t *testing.T) {
		needApache(t)
		test(t, apache().Brokers[0].Addr)
	})
}

func needApache(t *testing.T) {
	t.Helper()
	lane.Java(t)
	lane.KafkaJars(t, apacheVersion)
}
