package security

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/kerberos"
)

// shows sends a token, with a header or without, and gives the token that comes back.
func shows(s stranger, headers bool, token []byte) (back []byte, says string) {
	if !headers {
		says = s.says(token, func(body []byte) string { back = body; return "raw" })
		return back, says
	}
	req := kmsg.NewPtrSASLAuthenticateRequest()
	req.SASLAuthBytes = token
	req.SetVersion(2)
	says = s.says(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)[4:], func(body []byte) string {
		resp := kmsg.NewPtrSASLAuthenticateResponse()
		resp.SetVersion(2)
		require.NoError(s.t, resp.ReadFrom(body[5:]))
		back = resp.SASLAuthBytes
		return told(resp)
	})
	return back, says
}

// proves goes through the exchange by a ticket; change, if there is one, spoils the token of a turn. Without headers the last token has no answer.
func proves(headers bool, ticket kerberos.Ticket, change func(turn int, token []byte) []byte) step {
	return func(s stranger) string {
		x, token, err := kerberos.Initiate(ticket)
		require.NoError(s.t, err)
		for turn, done := 0, false; ; turn++ {
			if change != nil {
				token = change(turn, token)
			}
			if done && !headers {
				_, err := s.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(token))), token...))
				require.NoError(s.t, err)
				return "known"
			}
			back, says := shows(s, headers, token)
			if says != "raw" && says != `authenticated 0 "" for 0 ms` || done {
				return fmt.Sprintf("%d: %s", turn, says)
			}
			done, token, err = x.Step(back)
			require.NoError(s.t, err)
		}
	}
}

// spoilt changes the last byte of the token of a turn.
func spoilt(which int) func(int, []byte) []byte {
	return func(turn int, token []byte) []byte {
		if turn == which {
			token[len(token)-1] ^= 1
		}
		return token
	}
}

const refusedTicket = `authenticated 58 "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI" for 0 ms`

// answersByTicket holds a broker to what Apache Kafka 3.9.1 answers to clients with tickets, and without. Who shows what he overheard is to be told nothing; how Kafka does that is closed to it
// since Java 16, and it refuses him.
func answersByTicket(t *testing.T, door string, ticket kerberos.Ticket, toWhoOverheard string) {
	const shaken = "shaken 0, 1 mechanisms"
	var request []byte // of one who is known, for those who overhear
	overheard := func(turn int, token []byte) []byte {
		if turn == 0 {
			request = token
		}
		return token
	}
	again := func(headers bool) step {
		return func(s stranger) string {
			_, says := shows(s, headers, request)
			return says
		}
	}
	for _, c := range []struct {
		name  string
		steps []step
		want  []string
	}{
		{"with headers", []step{shake(1, "GSSAPI"), proves(true, ticket, overheard), metadata}, []string{shaken, fmt.Sprintf(`2: authenticated 0 "" for %d ms`, reauthMs), "3 brokers"}},
		{"a request that was overheard", []step{shake(1, "GSSAPI"), again(true)}, []string{shaken, toWhoOverheard}},
		{"without headers", []step{shake(0, "GSSAPI"), proves(false, ticket, nil), metadata}, []string{shaken, "known", "3 brokers"}},
		{"a request that was overheard, without headers", []step{shake(0, "GSSAPI"), again(false)}, []string{shaken, "closed"}},
		{"again, by itself", []step{shake(1, "GSSAPI"), proves(true, ticket, nil), shake(1, "GSSAPI"), proves(true, ticket, nil), metadata},
			[]string{shaken, fmt.Sprintf(`2: authenticated 0 "" for %d ms`, reauthMs), shaken, fmt.Sprintf(`2: authenticated 0 "" for %d ms`, reauthMs), "3 brokers"}},
		{"a request that was changed", []step{shake(1, "GSSAPI"), proves(true, ticket, spoilt(0))}, []string{shaken, "0: " + refusedTicket}},
		{"something in the place of nothing", []step{shake(1, "GSSAPI"), proves(true, ticket, func(turn int, token []byte) []byte {
			if turn == 1 {
				return []byte{1}
			}
			return token
		})}, []string{shaken, "1: " + refusedTicket}},
		{"a choice that was changed", []step{shake(1, "GSSAPI"), proves(true, ticket, spoilt(2)), metadata}, []string{shaken, "2: " + refusedTicket, "closed"}},
		{"without a handshake", []step{proves(false, ticket, nil), metadata}, []string{"known", "3 brokers"}},
		{"nonsense without a handshake", []step{raw("\x60nonsense")}, []string{"closed"}},
		{"a token in the place of the handshake", []step{versions(3), raw("\x60nonsense")}, []string{both, "closed"}},
		{"nonsense", []step{shake(1, "GSSAPI"), show(2, "nonsense")}, []string{shaken, refusedTicket}},
		{"nothing", []step{shake(1, "GSSAPI"), show(2, "")}, []string{shaken, refusedTicket}},
		{"nonsense without headers", []step{shake(0, "GSSAPI"), raw("nonsense")}, []string{shaken, "closed"}},
	} {
		assert.Equal(t, c.want, converse(t, door, c.steps), "%s at %s", c.name, door)
	}
}
