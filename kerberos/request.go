package kerberos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Transient is an error that the next attempt of the same client may not meet, such as a ticket that is not valid yet. Kafka means not to tell it a client, which would take the answer for the
// last word; since Java 16 it cannot tell such an error from others.
type Transient string

func (t Transient) Error() string { return string(t) }

const (
	errReplay      = Transient("the request has been shown before")
	errNotYetValid = Transient("the ticket is not valid yet")
)

var (
	errTicketExpired = errors.New("the ticket has expired")
	errClocks        = errors.New("the clocks of client and broker differ by more than clockskew")
	errOtherClient   = errors.New("ticket and authenticator name different clients")
	errNoFlags       = errors.New("the authenticator has no checksum of GSS-API")
)

// request is an AP_REQ that holds: a client, which has a ticket for this service and the key in it.
type request struct {
	client  Name
	session types.EncryptionKey // of the ticket
	key     contextKey          // of what follows
	mutual  bool                // the client wants to know who the service is
	made    time.Time           // by the client's clock, to the second
	micros  int
	shown   []byte // what nobody but the client can have made: all else could be changed on the way
	// sequence is the client's first number. The service counts from there, too.
	sequence uint64
}

// openRequest judges an AP_REQ (RFC 4120, 3.2.3). The ticket may be for any name, if the key of this service opens it, as with Java: services have aliases. Addresses in tickets and channel
// bindings are passed over, as there.
func openRequest(message []byte, keys *keytab.Keytab, service Name, now time.Time, skew time.Duration) (r *request, err error) {
	err = guarded(func() error {
		r, err = tryToOpen(message, keys, service, now, skew)
		return err
	})
	return r, err
}

func tryToOpen(message []byte, keys *keytab.Keytab, service Name, now time.Time, skew time.Duration) (*request, error) {
	var req messages.APReq
	if err := req.Unmarshal(message); err != nil {
		return nil, err
	}
	ticket, err := openTicket(&req.Ticket, keys, service)
	if err != nil {
		return nil, fmt.Errorf("ticket: %w", err)
	}
	plain, err := decrypt(req.EncryptedAuthenticator, ticket.Key, keyusage.AP_REQ_AUTHENTICATOR)
	if err != nil {
		return nil, fmt.Errorf("authenticator: %w", err)
	}
	var proof types.Authenticator
	if err := proof.Unmarshal(plain); err != nil {
		return nil, fmt.Errorf("authenticator: %w", err)
	}
	r := &request{session: ticket.Key, key: contextKey{EncryptionKey: ticket.Key}, made: proof.CTime, micros: proof.Cusec, shown: req.EncryptedAuthenticator.Cipher, sequence: uint64(uint32(proof.SeqNumber))}
	if r.client, err = nameOf(ticket.CName, ticket.CRealm); err != nil {
		return nil, err
	}
	if !proof.CName.Equal(ticket.CName) || proof.CRealm != ticket.CRealm {
		return nil, errOtherClient
	}
	if err := checkTimes(ticket, proof.CTime.Add(time.Duration(proof.Cusec)*time.Microsecond), now, skew); err != nil {
		return nil, err
	}
	// The checksum of an authenticator is none here, but the options of GSS-API (RFC 4121, 4.1.1): length and hash of channel bindings, and flags.
	if proof.Cksum.CksumType != chksumtype.GSSAPI || len(proof.Cksum.Checksum) < 24 {
		return nil, errNoFlags
	}
	r.mutual = binary.LittleEndian.Uint32(proof.Cksum.Checksum[20:])&gssapi.ContextFlagMutual != 0
	if proof.SubKey.KeyType != 0 {
		if err := checkKey(proof.SubKey); err != nil {
			return nil, fmt.Errorf("subkey: %w", err)
		}
		r.key.EncryptionKey = proof.SubKey
	}
	return r, nil
}

func openTicket(t *messages.Ticket, keys *keytab.Keytab, service Name) (*messages.EncTicketPart, error) {
	if !modern(t.EncPart.EType) {
		return nil, fmt.Errorf("encryption type %d is not served: AES is", t.EncPart.EType)
	}
	key, _, err := keys.GetEncryptionKey(service.principal(), service.Realm, t.EncPart.KVNO, t.EncPart.EType)
	if err != nil {
		return nil, fmt.Errorf("for %s: %w", t.SName.PrincipalNameString(), err)
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	plain, err := decrypt(t.EncPart, key, keyusage.KDC_REP_TICKET)
	if err != nil {
		return nil, fmt.Errorf("for %s: %w", t.SName.PrincipalNameString(), err)
	}
	part := &messages.EncTicketPart{}
	if err := part.Unmarshal(plain); err != nil {
		return nil, err
	}
	return part, checkKey(part.Key)
}

// checkTimes lets clocks differ by skew.
func checkTimes(t *messages.EncTicketPart, made, now time.Time, skew time.Duration) error {
	if away := now.Sub(made); away > skew || away < -skew {
		return errClocks
	}
	if t.StartTime.Sub(now) > skew || types.IsFlagSet(&t.Flags, flags.Invalid) { // without a start the ticket is good from when it was made
		return errNotYetValid
	}
	if now.Sub(t.EndTime) > skew {
		return errTicketExpired
	}
	return nil
}

// reply is the AP_REP by which a service shows that it could read the ticket: the client's time, by the ticket's key.
func (r *request) reply() ([]byte, error) {
	return sealReply(messages.EncAPRepPart{CTime: r.made.UTC(), Cusec: r.micros, SequenceNumber: int64(r.sequence)}, r.session)
}

func sealReply(part messages.EncAPRepPart, session types.EncryptionKey) ([]byte, error) {
	plain, err := asn1.Marshal(part)
	if err != nil {
		return nil, err
	}
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(plain, asnAppTag.EncAPRepPart), session, keyusage.AP_REP_ENCPART, 0)
	if err != nil {
		return nil, err
	}
	message, err := asn1.Marshal(messages.APRep{PVNO: iana.PVNO, MsgType: msgtype.KRB_AP_REP, EncPart: sealed})
	return asn1tools.AddASNAppTag(message, asnAppTag.APREP), err
}
