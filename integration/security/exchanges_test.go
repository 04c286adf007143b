package security

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
)

// stranger speaks frames and keeps to no rules.
type stranger struct {
	t    *testing.T
	conn net.Conn
}

const patience = time.Minute

// says sends a frame and tells what comes back.
func (s stranger) says(frame []byte, read func(body []byte) string) string {
	require.NoError(s.t, s.conn.SetDeadline(time.Now().Add(patience)))
	if _, err := s.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)); err != nil {
		return "closed"
	}
	var size [4]byte
	if _, err := io.ReadFull(s.conn, size[:]); err != nil {
		require.NotErrorIs(s.t, err, net.ErrClosed)
		timeout, ok := err.(net.Error)
		require.False(s.t, ok && timeout.Timeout(), "neither answered nor closed")
		return "closed"
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(s.conn, body)
	require.NoError(s.t, err)
	return read(body)
}

// asks sends a request at a version.
func (s stranger) asks(req kmsg.Request, version int16) string {
	req.SetVersion(min(version, req.MaxVersion()))
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("stranger")).AppendRequest(nil, req, 1)[4:]
	binary.BigEndian.PutUint16(frame[2:], uint16(version))
	return s.says(frame, func(body []byte) string {
		resp := req.ResponseKind()
		body = body[4:]
		if version > req.MaxVersion() {
			resp.SetVersion(0) // only ApiVersions is answered
		} else if resp.IsFlexible() && req.Key() != 18 {
			body = body[1:]
		}
		require.NoError(s.t, resp.ReadFrom(body))
		return told(resp)
	})
}

func told(resp kmsg.Response) string {
	switch r := resp.(type) {
	case *kmsg.ApiVersionsResponse:
		var sasl []string
		for _, api := range r.ApiKeys {
			if api.ApiKey == 17 || api.ApiKey == 36 {
				sasl = append(sasl, fmt.Sprintf("%d:%d-%d", api.ApiKey, api.MinVersion, api.MaxVersion))
			}
		}
		return fmt.Sprintf("versions %d %s", r.ErrorCode, strings.Join(sasl, " "))
	case *kmsg.SASLHandshakeResponse:
		return fmt.Sprintf("shaken %d, %d mechanisms", r.ErrorCode, len(r.SupportedMechanisms))
	case *kmsg.SASLAuthenticateResponse:
		message := ""
		if r.ErrorMessage != nil {
			message = *r.ErrorMessage
		}
		return fmt.Sprintf("authenticated %d %q for %d ms", r.ErrorCode, message, r.SessionLifetimeMillis)
	case *kmsg.MetadataResponse:
		return fmt.Sprintf("%d brokers", len(r.Brokers))
	}
	return fmt.Sprintf("%T", resp)
}

// The steps of conversations.
type step func(stranger) string

func versions(v int16) step {
	return func(s stranger) string {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "stranger", "1"
		return s.asks(req, v)
	}
}

func shake(v int16, mechanism string) step {
	return func(s stranger) string {
		req := kmsg.NewPtrSASLHandshakeRequest()
		req.Mechanism = mechanism
		return s.asks(req, v)
	}
}

func show(v int16, token string) step {
	return func(s stranger) string {
		req := kmsg.NewPtrSASLAuthenticateRequest()
		req.SASLAuthBytes = []byte(token)
		return s.asks(req, v)
	}
}

func raw(token string) step {
	return func(s stranger) string {
		return s.says([]byte(token), func(body []byte) string { return fmt.Sprintf("raw %q", body) })
	}
}

func metadata(s stranger) string {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	return s.asks(req, 9)
}

func pause(d time.Duration) step {
	return func(stranger) string {
		time.Sleep(d) // time itself is what the server looks at
		return "later"
	}
}

const (
	asAlice = "\x00alice\x00alice-secret"
	asBob   = "\x00bob\x00bob-secret"
	both    = "versions 0 17:0-1 36:0-2"
)

var shortly = fmt.Sprintf(`authenticated 0 "" for %d ms`, reauthMs)

// What strangers say, and what Apache Kafka 3.9.1 answers.
var conversations = []struct {
	name, listener string
	steps          []step
	want           []string
}{
	{"a request without authentication", "SASL_PLAINTEXT", []step{metadata}, []string{"closed"}},
	{"HTTP", "SASL_PLAINTEXT", []step{raw("GET / HTTP/1.1\r\n\r\n")}, []string{"closed"}},
	{"a token before the handshake", "SASL_PLAINTEXT", []step{show(2, asAlice)}, []string{"closed"}},
	{"versions twice", "SASL_PLAINTEXT", []step{versions(3), versions(3)}, []string{both, "closed"}},
	{"versions of the future", "SASL_PLAINTEXT", []step{versions(99), versions(3), shake(1, "PLAIN")}, []string{"versions 35 ", both, "shaken 0, 3 mechanisms"}},
	{"no such mechanism", "SASL_PLAINTEXT", []step{shake(1, "GSSAPI"), metadata}, []string{"shaken 33, 3 mechanisms", "closed"}},
	{"a handshake of the future", "SASL_PLAINTEXT", []step{shake(2, "PLAIN")}, []string{"closed"}},
	{"a wrong password", "SASL_PLAINTEXT", []step{shake(1, "PLAIN"), show(2, asAlice+"x"), show(2, asAlice)},
		[]string{"shaken 0, 3 mechanisms", `authenticated 58 "Authentication failed: Invalid username or password" for 0 ms`, "closed"}},
	{"nothing of a password", "SASL_PLAINTEXT", []step{shake(1, "PLAIN"), show(0, "")},
		[]string{"shaken 0, 3 mechanisms", `authenticated 58 "Invalid SASL/PLAIN response: expected 3 tokens, got 1" for 0 ms`}},
	{"a wrong password without headers", "SASL_PLAINTEXT", []step{shake(0, "PLAIN"), raw(asAlice + "x")}, []string{"shaken 0, 3 mechanisms", "closed"}},
	{"without headers", "SASL_PLAINTEXT", []step{shake(0, "PLAIN"), raw(asAlice), metadata}, []string{"shaken 0, 3 mechanisms", `raw ""`, "1 brokers"}},
	{"a user that SCRAM does not know", "SASL_PLAINTEXT", []step{shake(1, "SCRAM-SHA-512"), show(1, "n,,n=eve,r=x")},
		[]string{"shaken 0, 3 mechanisms", `authenticated 58 "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512" for 0 ms`}},
	{"nonsense instead of SCRAM", "SASL_PLAINTEXT", []step{shake(1, "SCRAM-SHA-256"), show(2, ",,,")},
		[]string{"shaken 0, 3 mechanisms", `authenticated 58 "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256" for 0 ms`}},
	{"all again when it is over", "SASL_PLAINTEXT", []step{shake(1, "PLAIN"), show(2, asAlice), versions(3), shake(1, "PLAIN"), show(2, asAlice), metadata},
		[]string{"shaken 0, 3 mechanisms", `authenticated 0 "" for 0 ms`, both, "shaken 34, 0 mechanisms", `authenticated 34 "SaslAuthenticate request received after successful authentication" for 0 ms`, "1 brokers"}},
	{"where nobody asks", "PLAINTEXT", []step{shake(1, "PLAIN"), show(2, asAlice), metadata},
		[]string{"shaken 34, 0 mechanisms", `authenticated 34 "SaslAuthenticate request received after successful authentication" for 0 ms`, "1 brokers"}},
	{"in time", "SHORT", []step{shake(1, "PLAIN"), show(2, asAlice), pause(reauthMs / 2 * time.Millisecond), shake(1, "PLAIN"), show(2, asAlice), pause(reauthMs * 3 / 4 * time.Millisecond), metadata},
		[]string{"shaken 0, 2 mechanisms", shortly, "later", "shaken 0, 2 mechanisms", shortly, "later", "1 brokers"}},
	{"too late", "SHORT", []step{shake(1, "PLAIN"), show(2, asAlice), metadata, pause(reauthMs * 5 / 4 * time.Millisecond), metadata},
		[]string{"shaken 0, 2 mechanisms", shortly, "1 brokers", "later", "closed"}},
	{"as somebody else", "SHORT", []step{shake(1, "PLAIN"), show(2, asAlice), shake(1, "PLAIN"), show(2, asBob), metadata},
		[]string{"shaken 0, 2 mechanisms", shortly, "shaken 0, 2 mechanisms", `authenticated 58 "Cannot change principals during re-authentication from User.alice: User.bob" for 0 ms`, "closed"}},
	{"by another mechanism", "SHORT", []step{shake(1, "PLAIN"), show(2, asAlice), shake(1, "SCRAM-SHA-256"), show(2, "n,,n=carol,r=x")},
		[]string{"shaken 0, 2 mechanisms", shortly, "shaken 0, 2 mechanisms", "closed"}},
}

// converse takes the steps on a connection of their own and tells what each came to.
func converse(t *testing.T, addr string, steps []step) (told []string) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	require.NoError(t, err)
	defer conn.Close()
	for _, step := range steps {
		told = append(told, step(stranger{t, conn}))
	}
	return told
}

// converseInTime converses until all is said in time: whoever is held up for a second is not.
func converseInTime(t *testing.T, addr string, steps []step, want []string) []string {
	got := converse(t, addr, steps)
	for tries := 1; tries < 5 && !slices.Equal(want, got); tries++ {
		got = converse(t, addr, steps)
	}
	return got
}

// Both brokers are asked the same.
func TestStrangersAreAnsweredAsByApacheKafka(t *testing.T) {
	for name, program := range map[string]cluster.Program{"barnabas": cluster.Barnabas, "Apache Kafka": cluster.Kafka("3.9.1")} {
		t.Run(name, func(t *testing.T) {
			b := start(t, program)
			b.addrs["PLAINTEXT"] = b.Brokers[0].Addr
			for _, c := range conversations {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					if c.listener == "SHORT" {
						assert.Equal(t, c.want, converseInTime(t, b.addrs[c.listener], c.steps, c.want))
					} else {
						assert.Equal(t, c.want, converse(t, b.addrs[c.listener], c.steps))
					}
				})
			}
			t.Run("no secret in the log", func(t *testing.T) { assert.NotContains(t, b.Brokers[0].LogTail(1<<20), "-secret") })
		})
	}
}
