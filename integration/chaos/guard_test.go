package chaos

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
)

const (
	worker        = "worker"
	workersSecret = "worker-secret"

	reauthEvery = 4 * time.Second // so often everybody has to prove anew who he is
)

// guard stands at the brokers' doors: they are reached by SASL_SSL, also by each other, access lists decide what clients may do, and quotas how much of it. Who looks after a world comes in by
// a listener in clear text.
type guard struct {
	tls     *tls.Config
	pem     map[string]string // what is in the files that brokers are given; their users could not read these where they are
	entries map[int]string    // where the brokers are reached
	rate    float64           // bytes that workers may produce at each broker in a second; they may consume twice as many
}

// newGuard makes one whose rate should be above what the world's load is, and below what comes together while it cannot be written.
func newGuard(t testing.TB, rate float64) *guard {
	g := &guard{rate: rate, tls: &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}, pem: map[string]string{}, entries: map[int]string{}}
	for _, file := range []string{"ca.pem", "broker.pem", "broker-key.pem"} {
		text, err := os.ReadFile(filepath.Join("..", "security", "testdata", file))
		require.NoError(t, err)
		g.pem[file] = strings.NewReplacer("\r", "", "\n", `\n`).Replace(string(text))
		if file == "ca.pem" {
			require.True(t, g.tls.RootCAs.AppendCertsFromPEM(text))
		}
	}
	return g
}

// settings are those of all brokers, who know each other by SCRAM.
func (g *guard) settings(t testing.TB, zookeeper string) map[string]string {
	cmd := exec.Command(cluster.Binary(t), "kafka-configs", "--zookeeper", zookeeper, "--alter", "--entity-type", "users", "--entity-name", "broker", "--add-config", "SCRAM-SHA-512=[password=broker-secret]")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, chain, _ := strings.Cut(g.pem["broker.pem"], "-----BEGIN CERTIFICATE-----")
	const module = "org.apache.kafka.common.security."
	return map[string]string{
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,WORK:SASL_SSL", "inter.broker.listener.name": "WORK",
		"ssl.keystore.type": "PEM", "ssl.keystore.key": g.pem["broker-key.pem"], "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----" + chain,
		"ssl.truststore.type": "PEM", "ssl.truststore.certificates": g.pem["ca.pem"],
		"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512", "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
		"listener.name.work.scram-sha-512.sasl.jaas.config": module + `scram.ScramLoginModule required username="broker" password="broker-secret";`,
		"listener.name.work.plain.sasl.jaas.config":         fmt.Sprintf(module+`plain.PlainLoginModule required user_%s="%s";`, worker, workersSecret),
		"listener.name.work.connections.max.reauth.ms":      strconv.FormatInt(reauthEvery.Milliseconds(), 10),
		"authorizer.class.name":                             "kafka.security.authorizer.AclAuthorizer", "super.users": "User:broker;User:ANONYMOUS",
	}
}

// entrance is one broker's own settings.
func (g *guard) entrance(t testing.TB, id int) map[string]string {
	g.entries[id] = net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t)))
	return map[string]string{"listeners": "PLAINTEXT://${addr},WORK://" + g.entries[id]}
}

// letIn allows workers to do their work, and no more of it than their quotas.
func (g *guard) letIn(t testing.TB, seeds []string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...))
	require.NoError(t, err)
	defer client.Close()
	adm := kadm.NewClient(client)
	made, err := adm.CreateACLs(lane.Patience(t), kadm.NewACLs().Allow("User:"+worker).AllowHosts().Topics("*").Groups("*").TransactionalIDs("*").Clusters().
		Operations(kmsg.ACLOperationAll).ResourcePatternType(kadm.ACLPatternLiteral))
	require.NoError(t, err)
	for _, m := range made {
		require.NoError(t, m.Err)
	}
	name := worker
	limits, err := adm.AlterClientQuotas(lane.Patience(t), []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "user", Name: &name}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: g.rate}, {Key: "consumer_byte_rate", Value: 2 * g.rate}},
	}})
	require.NoError(t, err)
	for _, l := range limits {
		require.NoError(t, l.Err)
	}
}

// entry is where clients that work reach a broker.
func (w *world) entry(b *cluster.Broker) string {
	if w.guard == nil {
		return b.Addr
	}
	return w.guard.entries[b.ID]
}

func (w *world) entries() (list []string) {
	for _, b := range w.Brokers {
		list = append(list, w.entry(b))
	}
	return list
}

// addrs are all addresses of a broker.
func (w *world) addrs(b *cluster.Broker) []string {
	if w.guard == nil {
		return []string{b.Addr}
	}
	return []string{b.Addr, w.entry(b)}
}

func (w *world) sasl() kgo.Opt {
	return kgo.SASL(plain.Auth{User: worker, Pass: workersSecret}.AsMechanism())
}

// credentials are what a client needs at the entries.
func (w *world) credentials() []kgo.Opt {
	if w.guard == nil {
		return nil
	}
	return []kgo.Opt{w.sasl(), kgo.DialTLSConfig(w.guard.tls)}
}

// throughTap are a client's options, with those that make it be heard.
func (w *world) throughTap(l *listener, opts ...kgo.Opt) []kgo.Opt {
	all := []kgo.Opt{kgo.SeedBrokers(w.entries()...), kgo.Dialer(l.tap.DialContext), kgo.AlwaysRetryEOF()}
	if w.guard != nil {
		all = append(all, w.sasl())
	}
	return append(all, opts...)
}
