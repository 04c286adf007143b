package chaos

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
	"barnabas/zkstate/zktest"
)

// Brokers that are killed come back faster than anybody looks: also while they start, while their last life's orders are underway, and both at once. Under a controller that bounces too, and
// under Apache Kafka's, who may see of it no more than another epoch of the broker, no acknowledged record is lost, every partition has a leader that its followers follow, and every ISR becomes whole again by itself.
// $BARNABAS_CHAOS_BOUNCES asks for more than a few, and of each controller; $BARNABAS_CHAOS_SEED for others.
func TestBouncesThatNobodySees(t *testing.T) {
	seed := uint64(number("BARNABAS_CHAOS_SEED", int(time.Now().UnixNano()&0xffff)))
	t.Logf("BARNABAS_CHAOS_SEED=%d", seed)
	for _, first := range []struct {
		name, ibp string
		program   cluster.Program
		// by hand only. A leader of Kafka 2.8 that is put into a new epoch while its AlterPartition is asked throws its next wish away, unsent, with the answer to the old one
		// (KAFKA-12686), and stays alone in its ISR until the next epoch, whoever follows. Below 2.7 it writes ISRs to ZooKeeper itself, and cannot.
		left bool
	}{{"Barnabas", "3.9", cluster.Barnabas, false}, {"2.8.2 at 2.6", "2.6", cluster.Kafka("2.8.2"), false}, {"2.8.2", "2.8", cluster.Kafka("2.8.2"), true}, {"2.4.1", "2.4", cluster.Kafka("2.4.1"), true}, {"3.9.1", "3.9", cluster.Kafka("3.9.1"), true}} {
		if first.left && os.Getenv("BARNABAS_CHAOS_BOUNCES") == "" {
			continue
		}
		t.Run(first.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 3))
			lag := "3000"
			if first.name != "Barnabas" {
				lag = "60000" // a leader of 2.8 that shrinks an ISR while its controller changes it may never change it again
			}
			c := cluster.StartMixed(t, zktest.Real(t).Addr(), []cluster.Program{first.program, cluster.Barnabas, cluster.Barnabas}, map[string]string{
				"zookeeper.session.timeout.ms": "30000", "min.insync.replicas": "2", "inter.broker.protocol.version": first.ibp, "replica.lag.time.max.ms": lag,
			})
			createTopic(t, c.Seeds(), loaded, partitions, replicas)
			load := history.Start(t, history.Config{Seeds: c.Seeds(), Topic: loaded, Producers: 2, PerSecond: 500, MaxValue: 120})
			load.Progress(t, perRound, "at first")
			bouncing := c.Brokers
			if first.name != "Barnabas" {
				bouncing = bouncing[1:]
			}
			for range number("BARNABAS_CHAOS_BOUNCES", 6) {
				b := bouncing[rng.IntN(len(bouncing))]
				b.Kill(t)
				b.Start(t)
				time.Sleep(time.Duration(rng.Int64N(int64(time.Second)))) // whatever it is at then
			}
			for _, b := range c.Brokers {
				b.WaitReady(t)
			}
			c.WaitWhole(t, loaded, partitions, replicas)
			load.Progress(t, perRound, "in the end")
			assert.Empty(t, load.Finish(t, history.Promise{Idempotent: true}))
			assert.Empty(t, load.Refused())
			var dirs []string
			for _, b := range c.Brokers {
				b.Stop(t)
				dirs = append(dirs, b.Dir)
			}
			for p := range partitions {
				assert.Empty(t, history.CompareReplicas(dirs, loaded+"-"+strconv.Itoa(p)))
			}
			t.Logf("%d records acknowledged", load.Acked())
		})
	}
}
