package interop

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	saslplain "github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// trusting is a cluster whose brokers serve delegation tokens. Clients prove who they are on a listener of its own.
type trusting struct {
	*cluster.Cluster
	doors []string // address of that listener, by broker
}

func startTrusting(t *testing.T, settings map[string]string, programs ...cluster.Program) trusting {
	t.Helper()
	all := map[string]string{
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT", "inter.broker.listener.name": "PLAINTEXT",
		"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", "delegation.token.master.key": "the brokers' secret",
		"listener.name.clients.plain.sasl.jaas.config":         `org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret" user_bob="bob-secret";`,
		"listener.name.clients.scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"listener.name.clients.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"offsets.topic.num.partitions":                         "1",
	}
	for name, value := range settings {
		all[name] = value
	}
	c := trusting{Cluster: cluster.Prepare(t, zktest.Embedded(t).Addr(), len(programs), all, func(int) map[string]string { return nil })}
	for i, b := range c.Brokers {
		c.doors = append(c.doors, net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t))))
		b.Set("listeners", "PLAINTEXT://"+b.Addr+",CLIENTS://"+c.doors[i])
		b.Become(programs[i])
		b.Start(t)
	}
	for _, b := range c.Brokers {
		b.WaitReady(t)
	}
	return c
}

func byPassword(user string) sasl.Mechanism {
	return saslplain.Auth{User: user, Pass: user + "-secret"}.AsMechanism()
}

// at asks one broker, as somebody.
func (c trusting) at(t *testing.T, broker int, as sasl.Mechanism, req kmsg.Request) (kmsg.Response, error) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.doors[broker]), kgo.SASL(as), kgo.RequestRetries(0))
	require.NoError(t, err)
	defer client.Close()
	return client.SeedBrokers()[0].Request(lane.Patience(t), req)
}

// madeToken is a token as its holder knows it.
type madeToken struct {
	id   string
	hmac []byte
}

func (m madeToken) password() string { return base64.StdEncoding.EncodeToString(m.hmac) }

// proofs are the ways in which a holder proves it.
func (m madeToken) proofs() []sasl.Mechanism {
	a := scram.Auth{User: m.id, Pass: m.password(), IsToken: true}
	return []sasl.Mechanism{a.AsSha256Mechanism(), a.AsSha512Mechanism()}
}

// moveEnd ends a token a period of milliseconds from now, and gives when that is.
func (c trusting) moveEnd(t *testing.T, broker int, m madeToken, period int64) int64 {
	t.Helper()
	req := kmsg.NewPtrExpireDelegationTokenRequest()
	req.HMAC, req.ExpiryPeriodMillis = m.hmac, period
	resp, err := c.at(t, broker, byPassword("alice"), req)
	require.NoError(t, err)
	moved := resp.(*kmsg.ExpireDelegationTokenResponse)
	require.NoError(t, kerr.ErrorForCode(moved.ErrorCode))
	return moved.ExpiryTimestamp
}

func (c trusting) create(t *testing.T, broker int, renewers ...string) madeToken {
	t.Helper()
	req := kmsg.NewPtrCreateDelegationTokenRequest()
	req.MaxLifetimeMillis = time.Hour.Milliseconds()
	for _, r := range renewers {
		req.Renewers = append(req.Renewers, kmsg.CreateDelegationTokenRequestRenewer{PrincipalType: "User", PrincipalName: r})
	}
	resp, err := c.at(t, broker, byPassword("alice"), req)
	require.NoError(t, err)
	made := resp.(*kmsg.CreateDelegationTokenResponse)
	require.NoError(t, kerr.ErrorForCode(made.ErrorCode))
	assert.Equal(t, "alice", made.PrincipalName)
	return madeToken{made.TokenID, made.HMAC}
}

// expiry is when a broker believes that the token ends; 0 where it is not known.
func (c trusting) expiry(t *testing.T, broker int, m madeToken) int64 {
	t.Helper()
	resp, err := c.at(t, broker, byPassword("alice"), kmsg.NewPtrDescribeDelegationTokenRequest())
	require.NoError(t, err)
	for _, d := range resp.(*kmsg.DescribeDelegationTokenResponse).TokenDetails {
		if d.TokenID == m.id {
			assert.Equal(t, m.hmac, d.HMAC)
			return d.ExpiryTimestamp
		}
	}
	return 0
}

// A token that is made at a broker of any kind lets its holder in at those of the others; renewed and ended there, it is that everywhere. Kafka before 3.3 cannot read what later ones write,
// whatever the protocol version between brokers; it reads what Barnabas writes.
func TestDelegationTokensAreGoodAtBrokersOfAllKinds(t *testing.T) {
	lane.KafkaJars(t, "3.9.1")
	lane.KafkaJars(t, "2.8.2")
	const newKafka, ours, oldKafka = 0, 1, 2
	c := startTrusting(t, map[string]string{"inter.broker.protocol.version": "2.8"}, cluster.Kafka("3.9.1"), cluster.Barnabas, cluster.Kafka("2.8.2"))
	for _, way := range []struct {
		name  string
		maker int
		goes  []int // renewed at the first, ended at the last
	}{
		{"made by Barnabas", ours, []int{newKafka, ours}},
		{"made by Kafka 3.9.1", newKafka, []int{ours, newKafka}},
		{"made by Kafka 2.8.2", oldKafka, []int{ours, newKafka}},
		{"made by Barnabas, kept by 2.8.2", ours, []int{oldKafka, ours}},
	} {
		t.Run(way.name, func(t *testing.T) {
			made := c.create(t, way.maker, "bob")
			knows := func(broker int, check func(expires int64) bool) {
				t.Helper()
				require.Eventually(t, func() bool { return check(c.expiry(t, broker, made)) }, patience, 10*time.Millisecond)
			}
			known := func(expires int64) bool { return expires != 0 }
			for _, broker := range way.goes {
				knows(broker, known)
				for _, proof := range made.proofs() {
					resp, err := c.at(t, broker, proof, kmsg.NewPtrDescribeDelegationTokenRequest())
					require.NoError(t, err, "%s at broker %d", proof.Name(), broker+1)
					assert.Equal(t, kerr.DelegationTokenRequestNotAllowed.Code, resp.(*kmsg.DescribeDelegationTokenResponse).ErrorCode, "who came by a token may not ask of tokens")
				}
			}

			renew := kmsg.NewPtrRenewDelegationTokenRequest()
			renew.HMAC, renew.RenewTimeMillis = made.hmac, 1_000_000
			resp, err := c.at(t, way.goes[0], byPassword("bob"), renew)
			require.NoError(t, err)
			renewed := resp.(*kmsg.RenewDelegationTokenResponse)
			require.NoError(t, kerr.ErrorForCode(renewed.ErrorCode))
			for _, broker := range way.goes {
				knows(broker, func(expires int64) bool { return expires == renewed.ExpiryTimestamp })
			}

			c.moveEnd(t, way.goes[1], made, -1)
			for _, broker := range way.goes {
				knows(broker, func(expires int64) bool { return expires == 0 })
				_, err := c.at(t, broker, made.proofs()[0], kmsg.NewPtrMetadataRequest())
				assert.ErrorIs(t, err, kerr.SaslAuthenticationFailed)
			}
		})
	}
	t.Run("consoles", func(t *testing.T) { c.consoles(t, newKafka, ours) })
}

// consoles has each side's console write by a token of the other.
func (c trusting) consoles(t *testing.T, kafka, ours int) {
	fromOurs, fromKafka := c.create(t, ours), c.create(t, kafka)
	for broker, token := range map[int]madeToken{kafka: fromOurs, ours: fromKafka} {
		require.Eventually(t, func() bool { return c.expiry(t, broker, token) != 0 }, patience, 10*time.Millisecond)
	}
	require.Contains(t, runTool(t, cluster.Binary(t), "kafka-topics", "--bootstrap-server", c.Brokers[ours].Addr, "--create", "--topic", "t", "--replica-assignment", strconv.Itoa(ours+1)), "Created")
	c.WaitWhole(t, "t", 1, 1)

	theirs := startEachTool(t, "3.9.1")
	args := []string{"--topic", "t", "--num-records", "5", "--record-size", "3", "--throughput", "-1", "--producer.config"}
	said := theirs.run(t, "org.apache.kafka.tools.ProducerPerformance", append(args, tokenSettings(t, c.doors[ours], fromKafka)))
	require.Zero(t, said.exit, said.err)
	require.Contains(t, said.out, "5 records sent")
	assert.Contains(t, runTool(t, cluster.Binary(t), append([]string{"kafka-producer-perf-test"}, append(args, tokenSettings(t, c.doors[kafka], fromOurs))...)...), "5 records sent")
}

// tokenSettings are the client properties of who holds a token.
func tokenSettings(t *testing.T, door string, m madeToken) string {
	return clientSettings(t, door, "SCRAM-SHA-512", fmt.Sprintf(`org.apache.kafka.common.security.scram.ScramLoginModule required username="%s" password="%s" tokenauth="true";`, m.id, m.password()))
}

func clientSettings(t *testing.T, door, mechanism, jaas string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "client.properties")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "bootstrap.servers=%s\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=%s\nsasl.jaas.config=%s\n", door, mechanism, jaas), 0o600))
	return path
}

var (
	tokenIDs   = regexp.MustCompile(`(?m)(^|\s)[A-Za-z0-9_-]{22}( |$)`) // a dash may come first
	tokenHMACs = regexp.MustCompile(`[A-Za-z0-9+/]{86}==`)
	tokenDates = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d`)
)

// plainTokens takes out of what a tool says what differs from token to token.
func plainTokens(s said) said {
	s.out = tokenDates.ReplaceAllString(tokenHMACs.ReplaceAllString(tokenIDs.ReplaceAllString(s.out, "${1}ID$2"), "HMAC"), "DATE")
	return s
}

// A holder's session ends with his token at the latest, and the controller removes what is over.
func TestADelegationTokenThatIsOverLetsNobodyIn(t *testing.T) {
	c := startTrusting(t, map[string]string{"delegation.token.expiry.check.interval.ms": "50"}, cluster.Barnabas)
	made := c.create(t, 0)
	session := func() time.Duration {
		conn, err := net.Dial("tcp", c.doors[0])
		require.NoError(t, err)
		defer conn.Close()
		lifetime, err := authenticate(t, conn, made.proofs()[0])
		require.NoError(t, err)
		return lifetime
	}
	lasts := session()
	assert.Positive(t, lasts)
	assert.LessOrEqual(t, lasts, time.Hour)
	until := c.moveEnd(t, 0, made, 60_000)
	assert.Equal(t, until, c.expiry(t, 0, made))
	lasts = session()
	assert.Positive(t, lasts)
	assert.LessOrEqual(t, lasts, time.Minute)
	c.moveEnd(t, 0, made, 0)
	require.Eventually(t, func() bool { return c.expiry(t, 0, made) == 0 }, patience, 10*time.Millisecond)
	_, err := c.at(t, 0, made.proofs()[0], kmsg.NewPtrMetadataRequest())
	assert.ErrorIs(t, err, kerr.SaslAuthenticationFailed)
}

// authenticate goes through the exchange on a connection, and gives how long the session lasts.
func authenticate(t *testing.T, conn net.Conn, as sasl.Mechanism) (time.Duration, error) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	ask := func(req kmsg.Request, resp kmsg.Response) {
		req.SetVersion(1)
		resp.SetVersion(1)
		_, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1))
		require.NoError(t, err)
		var size [4]byte
		_, err = io.ReadFull(conn, size[:])
		require.NoError(t, err)
		answer := make([]byte, binary.BigEndian.Uint32(size[:]))
		_, err = io.ReadFull(conn, answer)
		require.NoError(t, err)
		require.NoError(t, resp.ReadFrom(answer[4:]))
	}
	shake := kmsg.NewPtrSASLHandshakeRequest()
	shake.Mechanism = as.Name()
	ask(shake, kmsg.NewPtrSASLHandshakeResponse())
	session, message, err := as.Authenticate(lane.Patience(t), conn.RemoteAddr().String())
	for done := false; err == nil && !done; {
		req, resp := kmsg.NewPtrSASLAuthenticateRequest(), kmsg.NewPtrSASLAuthenticateResponse()
		req.SASLAuthBytes = message
		ask(req, resp)
		if err = kerr.ErrorForCode(resp.ErrorCode); err != nil {
			break
		}
		if done, message, err = session.Challenge(resp.SASLAuthBytes); done {
			return time.Duration(resp.SessionLifetimeMillis) * time.Millisecond, err
		}
	}
	return 0, err
}

// Kafka's tool and ours say the same of the same broker, in a life that each gives to tokens of its own.
func TestTheToolForDelegationTokensSaysWhatKafkasSays(t *testing.T) {
	lane.Java(t)
	c := startTrusting(t, nil, cluster.Barnabas)
	settings := map[string]string{"EMPTY": clientSettings(t, "", "PLAIN", "")}
	for _, user := range []string{"alice", "bob"} {
		settings[strings.ToUpper(user)] = clientSettings(t, c.doors[0], "PLAIN", fmt.Sprintf(`org.apache.kafka.common.security.plain.PlainLoginModule required username="%s" password="%[1]s-secret";`, user))
	}
	require.NoError(t, os.WriteFile(settings["EMPTY"], nil, 0o600))
	for at, version := range []string{"2.8.2", "3.9.1"} {
		t.Run(version, func(t *testing.T) {
			kafka := startEachTool(t, version)
			class := [2]string{"kafka.admin.DelegationTokenCommand", "org.apache.kafka.tools.DelegationTokenCommand"}[at]
			lives := map[string]func(args []string) said{
				"theirs": func(args []string) said { return kafka.run(t, class, args) },
				"ours":   func(args []string) said { return runOwn(t, version, "kafka-delegation-tokens", args) },
			}
			told := map[string][]said{}
			for whose, run := range lives {
				hmac := ""
				for _, call := range tokenCalls(version) {
					args := strings.Fields(strings.NewReplacer("DOOR", c.doors[0], "BROKER", c.Brokers[0].Addr, "HMAC", hmac,
						"ALICE", settings["ALICE"], "BOB", settings["BOB"], "EMPTY", settings["EMPTY"]).Replace(call))
					s := run(args)
					if found := tokenHMACs.FindString(s.out); found != "" {
						hmac = found
					}
					s.out = strings.ReplaceAll(s.out, hmac, "HMAC")
					told[whose] = append(told[whose], plainTokens(s))
				}
			}
			for i, call := range tokenCalls(version) {
				want, got := told["theirs"][i], told["ours"][i]
				assert.Equal(t, want.exit, got.exit, "%s: exit code; Kafka's says %s%s, ours %s%s", call, want.out, want.err, got.out, got.err)
				assert.Equal(t, want.out, got.out, "%s: standard output", call)
				assert.Equal(t, reason(want.err), reason(got.err), "%s: the reason on standard error", call)
			}
		})
	}
}

// tokenCalls are made in this order; HMAC is that of the last token.
func tokenCalls(version string) []string {
	const alice, bob = "--bootstrap-server DOOR --command-config ALICE ", "--bootstrap-server DOOR --command-config BOB "
	calls := []string{
		"", "--help", "--version", "--bogus", "--describe", "--create --describe", "--bootstrap-server DOOR --create", alice + "--create", alice + "--renew", alice + "--renew --hmac x", alice + "--expire --hmac x",
		alice + "--create --max-life-time-period 1 --hmac x", alice + "--renew --hmac x --renew-time-period 1 --owner-principal User:a",
		alice + "--expire --hmac x --expiry-time-period 1 --max-life-time-period 1", alice + "--describe --hmac x",
		alice + "--create --max-life-time-period 1 --renewer-principal x",
		alice + "--create --max-life-time-period 1 --renewer-principal Group:x",
		alice + "--create --max-life-time-period -1 --renewer-principal User:bob --renewer-principal User:carol",
		alice + "--describe --owner-principal User:alice",
		bob + "--renew --hmac HMAC --renew-time-period -1",
		bob + "--renew --hmac HMAC --renew-time-period=5000000",
		alice + "--expire --hmac HMAC --expiry-time-period 4000000",
		alice + "--expire --hmac HMAC --expiry-time-period -1",
		alice + "--expire --hmac HMAC --expiry-time-period -1",
		alice + "--renew --hmac HMAC --renew-time-period 1",
		alice + "--describe --owner-principal User:alice --owner-principal User:bob",
		"--bootstrap-server BROKER --command-config EMPTY --create --max-life-time-period -1",
		"--bootstrap-server BROKER --command-config EMPTY --describe",
		"--bootstrap-server BROKER --command-config EMPTY --expire --hmac AAAA --expiry-time-period -1",
	}
	if version == "3.9.1" {
		calls = append(calls,
			alice+"--create --max-life-time-period 100000 --owner-principal User:bob",
			bob+"--describe --owner-principal User:bob",
			bob+"--expire --hmac HMAC --expiry-time-period -1")
	}
	return calls
}
