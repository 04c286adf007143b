package kerberos

import (
	"errors"
	"fmt"
	"time"
)

// Service is who accepts, and on which terms.
type Service struct {
	// ConfigFile is where krb5.conf lies.
	ConfigFile string
	// Principal is the service's, such as kafka/host@REALM, or without a realm for the default one.
	Principal string
	// KeyTable is the file with its keys.
	KeyTable string
	// Rules are what principals are called, as sasl.kerberos.principal.to.local.rules has them.
	Rules []string
	// Replays are those of all acceptors with the same keys.
	Replays *Replays
	Now     func() time.Time
}

// Acceptor is the service's side of GSSAPI. It may be used by many exchanges at a time.
type Acceptor struct {
	name    Name
	keys    keyTable
	rules   *Rules
	skew    time.Duration
	replays *Replays
	now     func() time.Time
}

// NewAcceptor reads the settings, and whether there are keys.
func NewAcceptor(s Service) (*Acceptor, error) {
	conf, err := settings(s.ConfigFile)
	if err != nil {
		return nil, err
	}
	a := &Acceptor{keys: keyTable{file: s.KeyTable}, skew: conf.LibDefaults.Clockskew, replays: s.Replays, now: s.Now}
	if a.name, err = ParseName(s.Principal, conf.LibDefaults.DefaultRealm); err != nil {
		return nil, err
	}
	if a.rules, err = ParseRules(s.Rules, conf.LibDefaults.DefaultRealm); err != nil {
		return nil, err
	}
	return a, a.keys.check(a.name)
}

// Begin begins an exchange.
func (a *Acceptor) Begin() *Acceptance { return &Acceptance{acceptor: a} }

// Acceptance is one client's attempt.
//
//	client: AP_REQ               service: AP_REP, if the client wants to know who the service is
//	client: nothing              service: wrapped: which layers it offers (none) and the size of messages (0)
//	client: wrapped: the layer it chose, a size, and whom it wants to act as
type Acceptance struct {
	acceptor *Acceptor
	stage    stage
	request  *request
}

type stage int8

const (
	expectRequest stage = iota
	expectNothing
	expectChoice
	over
)

// noLayer is that what follows the exchange is neither signed nor encrypted by it: the only layer that Kafka has.
const noLayer = 1

var (
	errOver   = errors.New("the exchange is over")
	errLayer  = errors.New("a security layer was asked for that was not offered")
	errAnswer = errors.New("an answer came where none belongs")
)

// Step takes what the client sent and gives what to send it; a nil answer is none. When client names somebody, he has proven to be that, by the name that the rules give him, and the exchange
// is over. After an error it is over, too. Whom the client wants to act as is passed over, as by Kafka: it is known as who it is.
func (x *Acceptance) Step(token []byte) (answer []byte, client string, err error) {
	switch stage := x.stage; {
	case stage == expectRequest:
		answer, err = x.accept(token)
	case stage == expectNothing && len(token) != 0:
		err = errAnswer
	case stage == expectNothing:
		answer, err = x.offer()
	case stage == expectChoice:
		client, err = x.conclude(token)
	default:
		err = errOver
	}
	if err != nil || client != "" {
		x.stage = over
	}
	return answer, client, err
}

func (x *Acceptance) accept(token []byte) ([]byte, error) {
	kind, message, err := unframe(token)
	if err != nil {
		return nil, err
	}
	if kind != requestToken {
		return nil, fmt.Errorf("%w: kind %x, where a request belongs", errToken, kind)
	}
	a := x.acceptor
	keys, err := a.keys.read()
	if err != nil {
		return nil, err
	}
	now := a.now()
	if x.request, err = openRequest(message, keys, a.name, now, a.skew); err != nil {
		return nil, err
	}
	// Within twice the skew its own time makes it too old.
	if a.replays.seen(x.request.shown, now, 2*a.skew) {
		return nil, errReplay
	}
	if !x.request.mutual {
		return x.offer()
	}
	reply, err := x.request.reply()
	if err != nil {
		return nil, err
	}
	x.stage = expectNothing
	return frame(replyToken, reply), nil
}

// offer names the layers, in a byte, and in three bytes how long a message of theirs may be: 0, since there will be none.
func (x *Acceptance) offer() ([]byte, error) {
	x.stage = expectChoice
	return x.request.key.wrap(acceptor, x.request.sequence, []byte{noLayer, 0, 0, 0})
}

func (x *Acceptance) conclude(token []byte) (client string, err error) {
	choice, err := x.request.key.unwrap(initiator, token)
	if err != nil {
		return "", fmt.Errorf("%s: %w", x.request.client, err)
	}
	if len(choice) < 4 || choice[0]&noLayer == 0 {
		return "", fmt.Errorf("%s: %w", x.request.client, errLayer)
	}
	return x.acceptor.rules.ShortName(x.request.client)
}
