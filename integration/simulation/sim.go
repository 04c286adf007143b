package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/vfs"
	"barnabas/controller"
	"barnabas/zkstate"
)

// Sim is one run.
type Sim struct {
	w     *world
	zk    *ensemble
	nodes []*node

	ibp                   controller.IBP
	alterPartition        bool
	alterPartitionVersion int16
	faults                faults
	calm                  bool // the second phase: no faults any more

	cut      map[[2]int32]bool // links between nodes that carry nothing
	requests uint64
	broken   error // the first invariant that did not hold
	facts    facts
	ledger   map[incarnation]*history
	plants   plants
	Done     Tally

	flush      partition.FlushPolicy
	unclean    bool // unclean.leader.election.enable
	logConfig  commitlog.Config
	quietUntil time.Duration
	pids       int64
	only       scenario
	producers  []*producer
	consumers  []*consumer
	clubs      []*club
	deeds      *deeds
	// assignments are the topics as they were decoded last.
	assignments map[string]decoded
	ids         int
	drop        map[int]bool // faults and works that do not happen, by number: how a run is made smaller
	acts        int          // faults and works so far
	happened    []int
}

// Tally counts what a run did, so that a lane that did nothing cannot pass for one that found nothing.
type Tally struct {
	Steps, Transactions, Elections, Crashes, Pauses, Cuts, Expiries, Lost, Repeated     int
	TopicsCreated, TopicsDeleted, Reassignments, ISRChanges                             int
	Joins, Commits, CommittedTxns, AbortedTxns, Markers, Loads                          int
	Isolated, Flips, Unclean, Ended                                                     int
	Damaged, PowerCuts, DiskErrors, Reopened, ClockJumps, Leads, Committed, Acked, Read int
}

const (
	stormLasts = 20 * time.Second
	calmLasts  = 90 * time.Second
)

// Run runs one seed to its end. It returns the first invariant that did not hold, or what did not converge.
func Run(seed uint64, trace *strings.Builder) (*Sim, error) { return run(seed, trace, "", nil) }

// run plants a fault of the zoo, by name, and leaves out some faults and works, by number.
func run(seed uint64, trace *strings.Builder, plant string, drop map[int]bool) (*Sim, error) {
	return runScenario(seed, trace, plant, drop, scenario{})
}

func runScenario(seed uint64, trace *strings.Builder, plant string, drop map[int]bool, only scenario) (*Sim, error) {
	s := &Sim{w: newWorld(seed), cut: map[[2]int32]bool{}, facts: newFacts(), ledger: map[incarnation]*history{}, assignments: map[string]decoded{}, drop: drop, only: only}
	s.plants = plants{s, plant}
	s.deeds = newDeeds(s)
	s.w.trace = trace
	s.zk = newEnsemble(s.w)
	s.zk.committed = s.committed
	s.zk.ignoreFence = s.planted("controllers write without the fence")
	s.draw()
	if s.only.prepare != nil {
		s.only.prepare(s)
	}
	s.makeDirectories()
	for id := range int32(3 + s.w.rand.IntN(3)) {
		s.nodes = append(s.nodes, &node{s: s, id: id + 1, core: controller.NewCore(controller.CoreConfig{}), broker: &broker{}, disk: vfs.NewCrashFS()})
	}
	s.formClubs()
	for _, n := range s.nodes {
		n.start()
	}
	defer func() {
		for _, n := range s.nodes {
			n.core.Stop(s.wallClock())
			n.broker.die()
		}
	}()
	look := func() error {
		if s.w.steps%8 == 0 {
			s.marks()
		}
		return s.broken
	}
	s.planFault()
	s.planWork()
	s.planInspection()
	s.startClients()
	s.planTrouble()
	s.operate()
	if err := s.w.runUntil(stormLasts, look); err != nil {
		return s, s.failed(seed, err)
	}
	s.heal()
	var left error
	for s.w.now < stormLasts+calmLasts {
		if err := s.w.runUntil(s.w.now+time.Second, look); err != nil {
			return s, s.failed(seed, err)
		}
		if left = s.converged(); left == nil {
			break
		}
	}
	s.Done.Steps = s.w.steps
	if left != nil {
		return s, s.failed(seed, fmt.Errorf("not converged %v after the last fault: %w", calmLasts, left))
	}
	return s, nil
}

func (s *Sim) failed(seed uint64, err error) error {
	return fmt.Errorf("seed %d at %v: %w", seed, s.w.now, err)
}

// check notes an invariant that does not hold; the run ends after this step.
func (s *Sim) check(holds bool, format string, args ...any) {
	if !holds && s.broken == nil {
		s.broken = fmt.Errorf(format, args...)
		s.w.tell("BROKEN: %v", s.broken)
	}
}

// draw decides what kind of world this seed is.
func (s *Sim) draw() {
	versions := []string{"3.9", "3.9", "3.9", "2.8", "2.7", "2.6", "2.4"}
	s.ibp, _ = controller.ParseIBP(pick(s.w, versions))
	s.plants.version(s)
	s.w.tell("inter.broker.protocol.version %s", s.ibp)
	s.alterPartition = s.ibp.AtLeast(2, 7, 2)
	switch {
	case s.ibp.AtLeast(3, 5, 0):
		s.alterPartitionVersion = 3
	case s.ibp.AtLeast(2, 8, 1):
		s.alterPartitionVersion = int16(s.w.rand.IntN(3))
	}
	s.faults = drawFaults(s.w)
	if s.only.kinds != nil {
		s.faults.kinds, s.faults.every = s.only.kinds, 500*time.Millisecond
	}
	s.flush = pick(s.w, []partition.FlushPolicy{partition.FlushAsKafka, partition.FlushThinISR, partition.FlushAlways})
	s.logConfig = commitlog.DefaultConfig()
	s.logConfig.RetentionMs = -1
	s.logConfig.FileDeleteDelayMs = 2000
	s.logConfig.SegmentBytes = pick(s.w, []int32{1 << 10, 4 << 10, 1 << 20})
	s.logConfig.MinInsync = pick(s.w, []int32{1, 1, 2})
	s.zk.maxLag = pick(s.w, []time.Duration{time.Millisecond, 10 * time.Millisecond, 300 * time.Millisecond})
	s.plants.weigh(s)
}

func (s *Sim) wallClock() time.Time { return time.Unix(1_700_000_000, 0).Add(s.w.now) }

func (s *Sim) coreConfig(n *node) controller.CoreConfig {
	return controller.CoreConfig{
		BrokerID: n.id, IBP: s.ibp, Listener: "PLAINTEXT", DeleteTopics: true,
		UncleanElection: func() bool { return s.unclean || s.planted("unclean elections where they are not allowed") },
		AutoRebalance:   true, RebalanceInterval: 5 * time.Second, RebalancePercent: 0, Random: dice{s.w.rand},
	}
}

// dice makes bytes of the run's source of chance.
type dice struct{ r *rand.Rand }

func (d dice) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(d.r.Uint32())
	}
	return len(p), nil
}

// admin is the session of administrators; it is never lost.
const admin int64 = 1

func (s *Sim) makeDirectories() {
	for _, path := range []string{"/brokers", zkstate.BrokerIDsPath, zkstate.TopicsPath, "/admin", zkstate.DeleteTopicsPath,
		zkstate.ISRChangeNotificationPath, zkstate.LogDirEventNotificationPath, "/config", "/config/topics"} {
		if _, err := s.zk.commit(admin, []zkstate.Op{zkstate.Create(path, nil)}); err != nil {
			panic(err)
		}
	}
}

// net carries something from one node to another: late, never, or twice.
func (s *Sim) net(from, to *node, deliver func()) {
	carry := func(after time.Duration) {
		s.w.in(after, func() {
			if !s.isCut(from, to) && to.up {
				to.atLife(to.life, deliver)
			}
		})
	}
	delay := s.w.between(200*time.Microsecond, 5*time.Millisecond)
	if !s.calm {
		if s.w.chance(s.faults.lose) {
			s.Done.Lost++
			return
		}
		if s.w.chance(s.faults.delay) {
			delay = s.w.between(0, 3*time.Second)
		}
		if s.w.chance(s.faults.repeat) {
			s.Done.Repeated++
			carry(s.w.between(0, 4*time.Second))
		}
	}
	carry(delay)
}

func (s *Sim) isCut(a, b *node) bool { return s.cut[[2]int32{min(a.id, b.id), max(a.id, b.id)}] }

// heal ends all faults.
func (s *Sim) heal() {
	s.w.tell("all faults end")
	s.calm = true
	clear(s.cut)
	s.zk.maxLag = 5 * time.Millisecond
	for _, n := range s.nodes {
		n.cutFromZK = false
		n.clockOff = 0
		n.disk.Inject(nil)
		n.resume()
		n.startAgain()
	}
}

// controllerOf is the node that this one believes to be the controller, nil if it knows none.
func (s *Sim) active() *node {
	for _, n := range s.nodes {
		if n.up && !n.paused && n.status.Active {
			return n
		}
	}
	return nil
}
