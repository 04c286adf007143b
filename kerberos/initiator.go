package kerberos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Ticket is what a client shows to a service.
type Ticket struct {
	ticket     messages.Ticket
	key        types.EncryptionKey
	client     types.PrincipalName
	realm      string // the client's
	start, end time.Time
}

// Initiation is the client's side of an exchange; see Acceptance. The client asks the service to prove itself, and for no layer.
type Initiation struct {
	stage    stage
	session  types.EncryptionKey // of the ticket
	proof    types.Authenticator
	key      contextKey
	sequence uint64
}

var (
	errNotTheService = errors.New("who answers is not the service that the ticket is for: it cannot tell what it was sent")
	errInsists       = errors.New("the service insists on a security layer, which Kafka has none of")
)

// Initiate begins an exchange, and gives the first token.
func Initiate(t Ticket) (*Initiation, []byte, error) {
	if err := checkKey(t.key); err != nil {
		return nil, nil, err
	}
	proof, err := types.NewAuthenticator(t.realm, t.client)
	if err != nil {
		return nil, nil, err
	}
	if err := proof.GenerateSeqNumberAndSubKey(t.key.KeyType, keySize(t.key.KeyType)); err != nil {
		return nil, nil, err
	}
	proof.CTime = proof.CTime.Truncate(time.Second) // what is finer is in Cusec
	options := make([]byte, 24)                     // RFC 4121, 4.1.1: the length of channel bindings, their hash (none), flags
	binary.LittleEndian.PutUint32(options, 16)
	binary.LittleEndian.PutUint32(options[20:], gssapi.ContextFlagMutual|gssapi.ContextFlagReplay|gssapi.ContextFlagSequence|gssapi.ContextFlagInteg)
	proof.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: options}
	request, err := messages.NewAPReq(t.ticket, t.key, proof)
	if err != nil {
		return nil, nil, err
	}
	types.SetFlag(&request.APOptions, flags.APOptionMutualRequired)
	message, err := request.Marshal()
	x := &Initiation{session: t.key, proof: proof, key: contextKey{EncryptionKey: proof.SubKey}, sequence: uint64(proof.SeqNumber)}
	return x, frame(requestToken, message), err
}

// Step takes what the service sent and gives what to send it. With done that is the last.
func (x *Initiation) Step(challenge []byte) (done bool, answer []byte, err error) {
	switch x.stage {
	case expectRequest:
		x.stage = expectNothing
		return false, []byte{}, x.verify(challenge)
	case expectNothing:
		x.stage = over
		answer, err = x.choose(challenge)
		return true, answer, err
	}
	return false, nil, errOver
}

// verify looks whether the service could open the ticket.
func (x *Initiation) verify(token []byte) error {
	kind, message, err := unframe(token)
	if err != nil {
		return err
	}
	if kind == errorToken {
		var said messages.KRBError
		if err := guarded(func() error { return said.Unmarshal(message) }); err != nil {
			return err
		}
		return fmt.Errorf("the service answers: %w", said)
	}
	if kind != replyToken {
		return fmt.Errorf("%w: kind %x, where a reply belongs", errToken, kind)
	}
	return guarded(func() error { return x.open(message) })
}

func (x *Initiation) open(message []byte) error {
	var reply messages.APRep
	if err := reply.Unmarshal(message); err != nil {
		return err
	}
	plain, err := decrypt(reply.EncPart, x.session, keyusage.AP_REP_ENCPART)
	if err != nil {
		return err
	}
	var part messages.EncAPRepPart
	if err := part.Unmarshal(plain); err != nil {
		return err
	}
	if !part.CTime.Equal(x.proof.CTime) || part.Cusec != x.proof.Cusec {
		return errNotTheService
	}
	if part.Subkey.KeyType != 0 {
		if err := checkKey(part.Subkey); err != nil {
			return err
		}
		x.key = contextKey{EncryptionKey: part.Subkey, chosen: true}
	}
	return nil
}

// choose answers the offer of layers.
func (x *Initiation) choose(token []byte) ([]byte, error) {
	offer, err := x.key.unwrap(acceptor, token)
	if err != nil {
		return nil, err
	}
	if len(offer) != 4 || offer[0]&noLayer == 0 {
		return nil, errInsists
	}
	return x.key.wrap(initiator, x.sequence, []byte{noLayer, 0, 0, 0})
}
