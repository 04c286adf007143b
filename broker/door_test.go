package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/wire"
)

type outcomes struct{ failures []error }

func (o *outcomes) Answered(_ *wire.Request, _ wire.Response, failure error) {
	o.failures = append(o.failures, failure)
}

type answering struct{}

func (answering) Connected(*wire.Conn)     {}
func (answering) Disconnected(*wire.Conn)  {}
func (answering) Handle(req *wire.Request) { req.NoReply() }

func TestNothingIsAnsweredBeforeTheFirstRegistration(t *testing.T) {
	d := &door{Handler: answering{}}
	seen := &outcomes{}
	ask := func() { d.Handle(wire.NewRequest(&wire.Conn{}, nil, time.Now(), seen)) }
	ask()
	d.open.Store(true)
	ask()
	require.Equal(t, []error{errNotRegistered, nil}, seen.failures)
}
