package kerberos

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const realm = "EXAMPLE.COM"

var kafka = Name{"kafka", "broker1.example.com", realm}

// world is a realm without servers: a service with keys on disk, and whoever gives tickets for it.
type world struct {
	keys     *keytab.Keytab
	service  Service
	acceptor *Acceptor
	now      time.Time
	keyType  int32
}

func newWorld(t testing.TB, keyType int32, rules ...string) *world {
	t.Helper()
	w := &world{keys: keyTableOf(t, keyType, kafka, "kafka's secret"), now: time.Now().UTC(), keyType: keyType}
	if len(rules) == 0 {
		rules = []string{"DEFAULT"}
	}
	w.service = Service{
		ConfigFile: write(t, "krb5.conf", "[libdefaults]\n default_realm = "+realm+"\n"), KeyTable: writeKeys(t, w.keys), Principal: kafka.String(), Rules: rules,
		Replays: &Replays{}, Now: func() time.Time { return w.now },
	}
	var err error
	w.acceptor, err = NewAcceptor(w.service)
	require.NoError(t, err)
	return w
}

func keyTableOf(t testing.TB, keyType int32, n Name, secret string) *keytab.Keytab {
	t.Helper()
	table := keytab.New()
	require.NoError(t, table.AddEntry(n.local(), n.Realm, secret, time.Now(), 1, keyType))
	return table
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func writeKeys(t testing.TB, table *keytab.Keytab) string {
	t.Helper()
	text, err := table.Marshal()
	require.NoError(t, err)
	return write(t, "service.keytab", string(text))
}

// ticket is one of client for the service, good for an hour from start.
func (w *world) ticket(t testing.TB, client Name, start time.Time) Ticket {
	t.Helper()
	return w.ticketBy(t, w.keys, client, kafka, start)
}

func (w *world) ticketBy(t testing.TB, keys *keytab.Keytab, client, service Name, start time.Time) Ticket {
	t.Helper()
	return ticketOf(t, keys, w.keyType, client, service, start, types.NewKrbFlags())
}

// ticketOf makes a ticket as a realm's server does. The library's own has keys of a wrong length for one of the ciphers.
func ticketOf(t testing.TB, keys *keytab.Keytab, keyType int32, client, service Name, start time.Time, bits asn1.BitString) Ticket {
	t.Helper()
	session := types.EncryptionKey{KeyType: keyType, KeyValue: make([]byte, keySize(keyType))}
	_, _ = rand.Read(session.KeyValue)
	end := start.Add(time.Hour)
	plain, err := asn1.Marshal(messages.EncTicketPart{Flags: bits, Key: session, CRealm: client.Realm, CName: client.principal(), AuthTime: start, StartTime: start, EndTime: end, RenewTill: end})
	require.NoError(t, err)
	key, version, err := keys.GetEncryptionKey(service.principal(), service.Realm, 0, keyType)
	require.NoError(t, err)
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(plain, asnAppTag.EncTicketPart), key, keyusage.KDC_REP_TICKET, version)
	require.NoError(t, err)
	ticket := messages.Ticket{TktVNO: iana.PVNO, Realm: service.Realm, SName: service.principal(), EncPart: sealed}
	return newTicket(ticket, session, client.principal(), client.Realm, start, start, end)
}

var alice = Name{"alice", "", realm}

// meet goes through an exchange, and gives who the service knows and what each side found wrong.
func meet(x *Initiation, token []byte, service *Acceptance) (known string, clientErr, serviceErr error) {
	for done := false; ; {
		answer, client, err := service.Step(token)
		if err != nil || client != "" || done {
			return client, nil, err
		}
		if done, token, err = x.Step(answer); err != nil {
			return "", err, nil
		}
	}
}

func (w *world) try(t testing.TB, ticket Ticket) (string, error) {
	t.Helper()
	x, token, err := Initiate(ticket)
	require.NoError(t, err)
	known, clientErr, err := meet(x, token, w.acceptor.Begin())
	require.NoError(t, clientErr)
	return known, err
}

var keyTypes = map[string]int32{
	"aes128-cts-hmac-sha1-96": etypeID.AES128_CTS_HMAC_SHA1_96, "aes256-cts-hmac-sha1-96": etypeID.AES256_CTS_HMAC_SHA1_96,
	"aes128-cts-hmac-sha256-128": etypeID.AES128_CTS_HMAC_SHA256_128, "aes256-cts-hmac-sha384-192": etypeID.AES256_CTS_HMAC_SHA384_192,
}

func TestClientAndServiceProveThemselvesToEachOther(t *testing.T) {
	for name, keyType := range keyTypes {
		w := newWorld(t, keyType)
		known, err := w.try(t, w.ticket(t, alice, w.now))
		require.NoError(t, err, name)
		assert.Equal(t, "alice", known, name)
	}
}

func TestWhatHoldsNotIsRefused(t *testing.T) {
	w := newWorld(t, etypeID.AES256_CTS_HMAC_SHA1_96)
	other := Name{"http", "broker1.example.com", realm}
	foreign := keyTableOf(t, w.keyType, other, "http's secret")
	forged := keyTableOf(t, w.keyType, kafka, "a guess")
	clockskew := 5 * time.Minute
	for name, c := range map[string]struct {
		ticket Ticket
		says   string
	}{
		"expired":                 {w.ticket(t, alice, w.now.Add(-time.Hour-clockskew-time.Second)), errTicketExpired.Error()},
		"not valid yet":           {w.ticket(t, alice, w.now.Add(clockskew+time.Second)), errNotYetValid.Error()},
		"by another key":          {w.ticketBy(t, forged, alice, kafka, w.now), "integrity verification failed"},
		"for another service":     {w.ticketBy(t, foreign, alice, other, w.now), "integrity verification failed"},
		"of a realm of strangers": {w.ticket(t, Name{"alice", "", "ELSEWHERE"}, w.now), "no rule of sasl.kerberos.principal.to.local.rules applies to alice@ELSEWHERE"},
	} {
		known, err := w.try(t, c.ticket)
		assert.ErrorContains(t, err, c.says, name)
		assert.Empty(t, known, name)
	}
	known, err := w.try(t, w.ticket(t, alice, w.now.Add(-time.Hour-clockskew+time.Minute)))
	assert.NoError(t, err, "clocks may differ")
	assert.Equal(t, "alice", known)

	stolen := w.ticket(t, alice, w.now)
	stolen.client = Name{"bob", "", realm}.principal()
	_, err = w.try(t, stolen)
	assert.ErrorIs(t, err, errOtherClient)
	stolen = w.ticket(t, alice, w.now)
	stolen.key = w.ticket(t, alice, w.now).key
	_, err = w.try(t, stolen)
	assert.ErrorContains(t, err, "authenticator")
}

// Ticket and key are what proves; as what a service is asked for is in the open.
func TestATicketForAnotherNameOfTheServiceIsGood(t *testing.T) {
	w := newWorld(t, etypeID.AES256_CTS_HMAC_SHA1_96)
	ticket := w.ticket(t, alice, w.now)
	ticket.ticket.SName = Name{"kafka", "alias.example.com", realm}.principal()
	known, err := w.try(t, ticket)
	require.NoError(t, err)
	assert.Equal(t, "alice", known)

	ticket = w.ticket(t, alice, w.now)
	x, token, err := Initiate(ticket)
	require.NoError(t, err)
	require.NotNil(t, x)
	nameless := bytes.Replace(token, []byte("kafka"), []byte("Kafka"), 1)
	require.NotEqual(t, token, nameless)
	_, _, err = w.acceptor.Begin().Step(nameless)
	assert.NoError(t, err)
}

func TestARequestIsTakenOnceByAllAcceptorsThatShareTheKeys(t *testing.T) {
	w := newWorld(t, etypeID.AES256_CTS_HMAC_SHA1_96)
	other, err := NewAcceptor(w.service)
	require.NoError(t, err)
	_, token, err := Initiate(w.ticket(t, alice, w.now))
	require.NoError(t, err)
	_, _, err = w.acceptor.Begin().Step(token)
	require.NoError(t, err)
	renamed := bytes.Replace(token, []byte("kafka"), []byte("Kafka"), 1) // what nothing protects
	for _, again := range [][]byte{token, renamed} {
		_, _, err = other.Begin().Step(again)
		assert.ErrorIs(t, err, errReplay)
	}
	for range 20 { // as long as its time makes it good
		w.now = w.now.Add(time.Minute)
		_, _, err = w.acceptor.Begin().Step(token)
		assert.Error(t, err)
	}
	assert.ErrorIs(t, err, errClocks)
}

func TestReplaysAreForgottenInTime(t *testing.T) {
	var r Replays
	now := time.Now()
	for i := range 1000 {
		assert.False(t, r.seen(binary.BigEndian.AppendUint32(nil, uint32(i)), now, time.Minute))
		assert.True(t, r.seen(binary.BigEndian.AppendUint32(nil, uint32(i)), now.Add(time.Minute), time.Minute))
		now = now.Add(10 * time.Second)
	}
	assert.Less(t, len(r.young)+len(r.former), 30)
}

func TestAClientNeedNotAskWhoTheServiceIs(t *testing.T) {
	w := newWorld(t, etypeID.AES128_CTS_HMAC_SHA256_128)
	token, key := modestRequest(t, w.ticket(t, alice, w.now))
	service := w.acceptor.Begin()
	offer, _, err := service.Step(token)
	require.NoError(t, err)
	layers, err := key.unwrap(acceptor, offer)
	require.NoError(t, err)
	assert.Equal(t, []byte{noLayer, 0, 0, 0}, layers)
	choice, err := key.wrap(initiator, 0, []byte{noLayer, 0, 0, 0})
	require.NoError(t, err)
	answer, known, err := service.Step(choice)
	require.NoError(t, err)
	assert.Nil(t, answer)
	assert.Equal(t, "alice", known)
}

// modestRequest is what clients by the library alone send: no mutual authentication, no key of their own.
func modestRequest(t testing.TB, ticket Ticket) (token []byte, key contextKey) {
	t.Helper()
	proof, err := types.NewAuthenticator(ticket.realm, ticket.client)
	require.NoError(t, err)
	options := make([]byte, 24)
	options[0], options[20] = 16, 32
	proof.Cksum = types.Checksum{CksumType: 32771, Checksum: options}
	request, err := messages.NewAPReq(ticket.ticket, ticket.key, proof)
	require.NoError(t, err)
	message, err := request.Marshal()
	require.NoError(t, err)
	return frame(requestToken, message), contextKey{EncryptionKey: ticket.key}
}

func TestWhomAClientWantsToActAsIsPassedOver(t *testing.T) {
	w := newWorld(t, etypeID.AES256_CTS_HMAC_SHA1_96)
	for choice, good := range map[string]bool{"\x01\x00\x00\x00kafka/broker1.example.com@EXAMPLE.COM": true, "\x01kafka": true, "\x04\x00\x00\x00": false, "\x01\x00\x00": false, "": false} {
		token, key := modestRequest(t, w.ticket(t, alice, w.now))
		service := w.acceptor.Begin()
		_, _, err := service.Step(token)
		require.NoError(t, err)
		wrapped, err := key.wrap(initiator, 7, []byte(choice))
		require.NoError(t, err)
		_, known, err := service.Step(wrapped)
		if good {
			assert.NoError(t, err, "%q", choice)
			assert.Equal(t, "alice", known)
		} else {
			assert.Error(t, err, "%q", choice)
			assert.Empty(t, known)
		}
		_, known, err = service.Step(wrapped)
		assert.ErrorIs(t, err, errOver)
		assert.Empty(t, known)
	}
}

func TestAServiceThatCannotOpenTheTicketIsFoundOut(t *testing.T) {
	w, impostor := newWorld(t, etypeID.AES256_CTS_HMAC_SHA1_96), newWorld(t, etypeID.AES256_CTS_HMAC_SHA1_96)
	x, _, err := Initiate(w.ticket(t, alice, w.now))
	require.NoError(t, err)
	_, elsewhere, err := Initiate(impostor.ticket(t, alice, w.now))
	require.NoError(t, err)
	reply, _, err := impostor.acceptor.Begin().Step(elsewhere)
	require.NoError(t, err)
	_, _, err = x.Step(reply)
	assert.Error(t, err)

	ticket := w.ticket(t, alice, w.now) // the answer to another request by the same ticket
	x, _, err = Initiate(ticket)
	require.NoError(t, err)
	x.proof.CTime = x.proof.CTime.Add(-time.Second)
	_, second, err := Initiate(ticket)
	require.NoError(t, err)
	reply, _, err = w.acceptor.Begin().Step(second)
	require.NoError(t, err)
	_, _, err = x.Step(reply)
	assert.ErrorIs(t, err, errNotTheService)
}

func TestAServiceMayChooseTheKey(t *testing.T) {
	w := newWorld(t, etypeID.AES256_CTS_HMAC_SHA1_96)
	ticket := w.ticket(t, alice, w.now)
	x, _, err := Initiate(ticket)
	require.NoError(t, err)
	chosen := w.ticketKey(t)
	reply, err := sealReply(messages.EncAPRepPart{CTime: x.proof.CTime, Cusec: x.proof.Cusec, Subkey: chosen}, ticket.key)
	require.NoError(t, err)
	done, answer, err := x.Step(frame(replyToken, reply))
	require.NoError(t, err)
	assert.False(t, done)
	assert.NotNil(t, answer, "nothing is sent, which is a message")
	assert.Empty(t, answer)
	key := contextKey{EncryptionKey: chosen, chosen: true}
	offer, err := key.wrap(acceptor, 9, []byte{noLayer, 0, 0, 0})
	require.NoError(t, err)
	done, answer, err = x.Step(offer)
	require.NoError(t, err)
	assert.True(t, done)
	assert.Equal(t, byte(subkeyFlag), answer[2])
	choice, err := key.unwrap(initiator, answer)
	require.NoError(t, err)
	assert.Equal(t, []byte{noLayer, 0, 0, 0}, choice)
}

func TestAServiceThatInsistsOnALayerIsLeft(t *testing.T) {
	w := newWorld(t, etypeID.AES256_CTS_HMAC_SHA1_96)
	for _, offer := range [][]byte{{4, 0, 1, 0}, {noLayer}, {}} {
		x, token, err := Initiate(w.ticket(t, alice, w.now))
		require.NoError(t, err)
		service := w.acceptor.Begin()
		reply, _, err := service.Step(token)
		require.NoError(t, err)
		_, _, err = x.Step(reply)
		require.NoError(t, err)
		wrapped, err := service.request.key.wrap(acceptor, 0, offer)
		require.NoError(t, err)
		_, _, err = x.Step(wrapped)
		assert.ErrorIs(t, err, errInsists)
	}
}

func TestWrappedMessagesAreReadHoweverTheyAreTurned(t *testing.T) {
	key := contextKey{EncryptionKey: newWorld(t, etypeID.AES256_CTS_HMAC_SHA1_96).ticketKey(t)}
	token, err := key.wrap(acceptor, 5, []byte("hello"))
	require.NoError(t, err)
	head, rest := token[:16], token[16:]
	for turn := range 3 * len(rest) {
		at := len(rest) - turn%len(rest)
		turned := bytes.Join([][]byte{head, rest[at:], rest[:at]}, nil)
		binary.BigEndian.PutUint16(turned[6:], uint16(turn))
		message, err := key.unwrap(acceptor, turned)
		require.NoError(t, err, turn)
		assert.Equal(t, "hello", string(message))
	}
	for i := range token {
		changed := bytes.Clone(token)
		changed[i] ^= 0x10
		_, err := key.unwrap(acceptor, changed)
		assert.Error(t, err, i)
	}
	_, err = key.unwrap(initiator, token)
	assert.Error(t, err, "it came from the other side")
}

func (w *world) ticketKey(t testing.TB) types.EncryptionKey { return w.ticket(t, alice, w.now).key }

func TestNeitherOldKeysNorInvalidTicketsCount(t *testing.T) {
	w := newWorld(t, etypeID.AES256_CTS_HMAC_SHA1_96)
	old := keyTableOf(t, etypeID.RC4_HMAC, kafka, "kafka's secret")
	ticket := ticketOf(t, old, etypeID.RC4_HMAC, alice, kafka, w.now, types.NewKrbFlags())
	_, _, err := Initiate(ticket)
	assert.ErrorContains(t, err, "AES is")
	good := w.ticket(t, alice, w.now)
	good.ticket = ticket.ticket
	_, err = w.try(t, good)
	assert.ErrorContains(t, err, "AES is")

	bits := types.NewKrbFlags()
	types.SetFlag(&bits, flags.Invalid)
	_, err = w.try(t, ticketOf(t, w.keys, w.keyType, alice, kafka, w.now, bits))
	assert.ErrorIs(t, err, errNotYetValid)

	file := writeKeys(t, old)
	_, err = NewAcceptor(Service{ConfigFile: write(t, "krb5.conf", ""), KeyTable: file, Principal: kafka.String()})
	assert.ErrorContains(t, err, "has only keys of DES or RC4")
}

func TestKeysMayChangeWhileTheServiceRuns(t *testing.T) {
	w := newWorld(t, etypeID.AES256_CTS_HMAC_SHA1_96)
	newer := keyTableOf(t, w.keyType, kafka, "another secret")
	_, err := w.try(t, w.ticketBy(t, newer, alice, kafka, w.now))
	require.Error(t, err)
	text, err := newer.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.acceptor.keys.file, append(text, 0, 0, 0, 0), 0o600)) // its size tells, where the clock of the file system is coarse
	known, err := w.try(t, w.ticketBy(t, newer, alice, kafka, w.now))
	require.NoError(t, err)
	assert.Equal(t, "alice", known)
	require.NoError(t, os.Remove(w.acceptor.keys.file))
	_, err = w.try(t, w.ticketBy(t, newer, alice, kafka, w.now))
	assert.NoError(t, err, "the keys of before")
}

func FuzzAcceptor(f *testing.F) {
	w := newWorld(f, etypeID.AES256_CTS_HMAC_SHA1_96)
	x, token, err := Initiate(w.ticket(f, alice, w.now))
	require.NoError(f, err)
	service := w.acceptor.Begin()
	reply, _, err := service.Step(token)
	require.NoError(f, err)
	_, _, err = x.Step(reply)
	require.NoError(f, err)
	offer, _, err := service.Step(nil)
	require.NoError(f, err)
	_, choice, err := x.Step(offer)
	require.NoError(f, err)
	_, other, err := Initiate(w.ticket(f, alice, w.now))
	require.NoError(f, err)
	modest, _ := modestRequest(f, w.ticket(f, alice, w.now))
	f.Add(other, choice) // of another exchange
	f.Add(modest, choice)
	f.Add(reply, offer)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		service := w.acceptor.Begin()
		for _, token := range [][]byte{first, nil, second} {
			if _, known, err := service.Step(token); known != "" {
				t.Fatalf("%q is known", known)
			} else if err != nil {
				return
			}
		}
	})
}

// FuzzAuthenticator is a client that has a ticket, and writes what it likes in its proof.
func FuzzAuthenticator(f *testing.F) {
	w := newWorld(f, etypeID.AES256_CTS_HMAC_SHA1_96)
	ticket := w.ticket(f, alice, w.now)
	x, _, err := Initiate(ticket)
	require.NoError(f, err)
	plain, err := x.proof.Marshal()
	require.NoError(f, err)
	f.Add(plain)
	f.Fuzz(func(t *testing.T, plain []byte) {
		request, err := messages.NewAPReq(ticket.ticket, ticket.key, types.Authenticator{CName: ticket.client})
		require.NoError(t, err)
		request.EncryptedAuthenticator, err = crypto.GetEncryptedData(plain, ticket.key, keyusage.AP_REQ_AUTHENTICATOR, 0)
		require.NoError(t, err)
		message, err := request.Marshal()
		require.NoError(t, err)
		r, err := openRequest(message, w.keys, kafka, w.now, time.Minute)
		if err == nil {
			require.Equal(t, alice, r.client)
		}
	})
}

func FuzzInitiator(f *testing.F) {
	w := newWorld(f, etypeID.AES256_CTS_HMAC_SHA1_96)
	ticket := w.ticket(f, alice, w.now)
	_, token, err := Initiate(ticket)
	require.NoError(f, err)
	service := w.acceptor.Begin()
	reply, _, err := service.Step(token)
	require.NoError(f, err)
	offer, _, err := service.Step(nil)
	require.NoError(f, err)
	f.Add(reply, offer)
	f.Add(token, reply)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		x, _, err := Initiate(ticket)
		require.NoError(t, err)
		if _, _, err := x.Step(first); err == nil {
			t.Fatal("an answer to another request was taken")
		}
		x.stage = expectNothing
		if _, _, err := x.Step(second); err == nil {
			t.Fatal("an offer by another key was taken")
		}
	})
}
