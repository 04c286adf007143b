package chaos

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
)

// fault is something that goes wrong and can be mended.
type fault struct {
	kind, victim string
	inject, heal func(t testing.TB)
}

func describe(round []fault) string {
	var parts []string
	for _, f := range round {
		parts = append(parts, strings.TrimSpace(f.kind+" "+f.victim))
	}
	return strings.Join(parts, " and ")
}

// choose makes a round: one fault, or two on different victims, or one that spares nobody.
func (w *world) choose() []fault {
	if w.rng.IntN(12) == 0 {
		return []fault{w.killAll()}
	}
	first, used := w.one(nil)
	if w.rng.IntN(2) == 0 {
		return []fault{first}
	}
	second, _ := w.one(used)
	return []fault{first, second}
}

// one chooses a fault; used is the victim that it must not take, where a nil pointer inside of it stands for ZooKeeper.
func (w *world) one(used *victim) (fault, *victim) {
	kinds := []func(*cluster.Broker, string) fault{w.kill, w.kill, w.freeze, w.freeze}
	if w.firewall != nil {
		kinds = append(kinds, w.cutOff, w.cutFromZooKeeper, w.cutFromBrokers)
	}
	if canTrace() {
		kinds = append(kinds, w.failWrites)
	}
	choices := len(kinds) + 1 // ZooKeeper itself
	if w.small != nil {
		choices++
	}
	for {
		switch n := w.rng.IntN(choices); {
		case n < len(kinds):
			b, role := w.victim()
			if used == nil || used.broker != b {
				return kinds[n](b, role), &victim{b}
			}
		case n == len(kinds):
			if used == nil || used.broker != nil {
				return w.stopZooKeeper(), &victim{}
			}
		default:
			if used == nil || used.broker != w.small {
				return w.fillDisk(), &victim{w.small}
			}
		}
	}
}

type victim struct{ broker *cluster.Broker }

// victim chooses a broker by what it is: the controller, the leader of some partition, or any.
func (w *world) victim() (*cluster.Broker, string) {
	role := []string{"controller", "leader", "any"}[w.rng.IntN(3)]
	id := int32(1 + w.rng.IntN(len(w.Brokers)))
	client, err := kgo.NewClient(kgo.SeedBrokers(w.Seeds()...))
	require.NoError(w.t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if known, err := kadm.NewClient(client).Metadata(ctx, loaded); err == nil {
		switch role {
		case "controller":
			id = known.Controller
		case "leader":
			if p := known.Topics[loaded].Partitions[int32(w.rng.IntN(w.partitions))]; p.Leader > 0 {
				id = p.Leader
			}
		}
	}
	return w.Brokers[max(1, id)-1], role + " " + strconv.Itoa(int(max(1, id)))
}

func (w *world) kill(b *cluster.Broker, name string) fault {
	return fault{"kill -9", name, b.Kill, b.Start}
}

// killAll ends everything at once, ZooKeeper too, as a power cut that spares the disks does. All come back together.
func (w *world) killAll() fault {
	return fault{"kill -9 of everybody", "", func(t testing.TB) {
		w.zk.Stop()
		for _, b := range w.Brokers {
			b.Kill(t)
		}
	}, func(t testing.TB) {
		w.zk.Start()
		for _, b := range w.Brokers {
			b.Start(t)
		}
	}}
}

// freeze stops a broker in its tracks. Whether for longer than its session is the round's affair.
func (w *world) freeze(b *cluster.Broker, name string) fault {
	return fault{"freeze", name, b.Pause, b.Resume}
}

func (w *world) stopZooKeeper() fault {
	return fault{"kill -9 of ZooKeeper", "", func(testing.TB) { w.zk.Stop() }, func(testing.TB) { w.zk.Start() }}
}

func (w *world) cutOff(b *cluster.Broker, name string) fault {
	return w.cut("cut from everybody", b, name, w.firewall.everybody)
}

func (w *world) cutFromZooKeeper(b *cluster.Broker, name string) fault {
	return w.cut("cut from ZooKeeper", b, name, w.firewall.zooKeeper)
}

func (w *world) cutFromBrokers(b *cluster.Broker, name string) fault {
	return w.cut("cut from brokers and clients", b, name, w.firewall.allButZooKeeper)
}

func (w *world) cut(kind string, b *cluster.Broker, name string, from func(t testing.TB, uid int, broker []string, zookeeper string)) fault {
	return fault{kind, name,
		func(t testing.TB) { from(t, w.user(b), w.addrs(b), w.zk.Addr()) },
		func(t testing.TB) { w.firewall.open(t) }}
}

// canTrace tells whether this machine lets system calls of brokers fail.
func canTrace() bool {
	_, err := exec.LookPath("strace")
	return err == nil && os.Geteuid() == 0
}

const letsGo = 5 * time.Second

// failWrites makes every write to the broker's logs fail, which takes its directory offline until it is started again.
func (w *world) failWrites(b *cluster.Broker, name string) fault {
	var tracer *exec.Cmd
	return fault{"failing writes", name, func(t testing.TB) {
		tracer = exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-p", strconv.Itoa(b.PID()), "-e", "trace=pwrite64,pwritev,fsync,fdatasync", "-e", "inject=pwrite64,pwritev:error=EIO")
		tracer.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		require.NoError(t, tracer.Start())
	}, func(t testing.TB) {
		// It lets go of the process when it is asked to, unless that has just ended by itself: then it may wait for it without end.
		_ = tracer.Process.Signal(syscall.SIGINT)
		lost := time.AfterFunc(letsGo, func() { _ = tracer.Process.Kill() })
		_ = tracer.Wait()
		lost.Stop()
		b.Kill(t)
		b.Start(t)
	}}
}

// fillDisk leaves no room on the small disk, and in the end makes room: the broker comes back by itself.
func (w *world) fillDisk() fault {
	b := w.small
	filler := filepath.Join(filepath.Dir(b.Dir), "filler")
	return fault{"full disk", "broker " + strconv.Itoa(b.ID), func(t testing.TB) {
		lane.Fill(t, filler)
	}, func(t testing.TB) {
		require.NoError(t, os.Remove(filler))
	}}
}

func createTopic(t testing.TB, seeds []string, topic string, partitions, replicas int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...))
	require.NoError(t, err)
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(lane.Patience(t), int32(partitions), int16(replicas), nil, topic)
	require.NoError(t, err)
}
