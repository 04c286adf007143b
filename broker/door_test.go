package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/wire"
)

type outcomes chan error

func (o outcomes) Answered(_ *wire.Request, _ wire.Response, failure error) { o <- failure }

type answering struct{}

func (answering) Connected(*wire.Conn)     {}
func (answering) Disconnected(*wire.Conn)  {}
func (answering) Handle(req *wire.Request) { req.NoReply() }

func TestNothingIsAnsweredBeforeTheFirstRegistration(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(*door)
		want error
	}{{"registered", func(d *door) { d.open(); d.open() }, nil}, {"stopped", func(d *door) { d.close(); d.close() }, errNotRegistered}} {
		t.Run(row.name, func(t *testing.T) {
			d := newDoor()
			d.Handler = answering{}
			seen := make(outcomes, 1)
			asked := make(chan struct{})
			go func() {
				close(asked)
				d.Handle(wire.NewRequest(&wire.Conn{}, nil, time.Now(), seen))
			}()
			<-asked
			require.Empty(t, seen)
			row.end(d)
			require.Equal(t, row.want, <-seen)
		})
	}
}
