package auth

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/broker/wire"
)

// behind counts what gets through a gate.
type behind struct{ connected, handled, disconnected int }

func (b *behind) Connected(*wire.Conn)    { b.connected++ }
func (b *behind) Disconnected(*wire.Conn) { b.disconnected++ }
func (b *behind) Handle(r *wire.Request) {
	b.handled++
	r.NoReply()
}

// outcome notes how a request ended.
type outcome struct {
	size  int64
	err   error
	after time.Duration
	from  time.Time
	ended chan struct{} // closed when the others are set
}

func (o *outcome) Answered(_ *wire.Request, answer wire.Response, err error) {
	o.size, o.err, o.after = answer.Size(), err, time.Since(o.from)
	close(o.ended)
}

func send(g *Gate, c *wire.Conn, frame []byte) *outcome {
	o := &outcome{from: time.Now(), ended: make(chan struct{})}
	g.Handle(wire.NewRequest(c, frame, time.Now(), o))
	return o
}

func TestOnlyListenersWithSASLAskWhoAClientIs(t *testing.T) {
	next := &behind{}
	g := &Gate{Next: next, MaxFrame: 100}
	for _, protocol := range []string{"PLAINTEXT", "SSL"} {
		c := &wire.Conn{SecurityProtocol: protocol}
		g.Connected(c)
		assert.Zero(t, c.FrameLimit)
		send(g, c, metadata())
		g.Disconnected(c)
	}
	assert.Equal(t, behind{2, 2, 2}, *next)
}

// offering makes a listener IN offer mechanisms.
func offering(mechanisms ...Mechanism) func(string) []Offer {
	return func(listener string) (offers []Offer) {
		for _, m := range mechanisms {
			if listener == "IN" {
				offers = append(offers, Offer{Mechanism: m})
			}
		}
		return offers
	}
}

func TestAClientIsLetInWhenItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &behind{}
		g := &Gate{Next: next, MaxFrame: 100, Offers: offering(&Plain{Passwords: passwords})}
		c := &wire.Conn{SecurityProtocol: "SASL_SSL", Listener: "IN"}
		g.Connected(c)
		assert.EqualValues(t, 100, c.FrameLimit)
		for _, frame := range [][]byte{apiVersions(3), handshake(1, "PLAIN"), token(2, asAlice), metadata()} {
			o := send(g, c, frame)
			<-o.ended
			require.NoError(t, o.err)
		}
		assert.Equal(t, "User:alice", c.Principal.String())
		assert.Zero(t, c.FrameLimit)
		assert.Equal(t, behind{1, 2, 0}, *next)
	})
}

func TestAConnectionKnowsThatATokenOpenedIt(t *testing.T) {
	g := &Gate{Next: &behind{}, MaxFrame: 100, Offers: offering(&byToken{expires: time.Now().Add(time.Hour)}, &Plain{Passwords: passwords})}
	for mechanism, by := range map[string]bool{"TOKEN": true, "PLAIN": false} {
		c := &wire.Conn{SecurityProtocol: "SASL_SSL", Listener: "IN"}
		g.Connected(c)
		<-send(g, c, handshake(1, mechanism)).ended
		<-send(g, c, token(2, asAlice)).ended
		assert.Equal(t, "User:alice", c.Principal.String())
		assert.Equal(t, by, c.ByToken, mechanism)
	}
}

func TestAClientThatFailsWaitsForItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &behind{}
		g := &Gate{Next: next, FailureDelay: 100 * time.Millisecond, Offers: offering(&Plain{Passwords: passwords})}
		c := &wire.Conn{SecurityProtocol: "SASL_PLAINTEXT", Listener: "IN"}
		g.Connected(c)
		<-send(g, c, handshake(1, "PLAIN")).ended
		o := send(g, c, token(2, asAlice+"x"))
		<-o.ended
		assert.Equal(t, 100*time.Millisecond, o.after)
		assert.Error(t, o.err)
		assert.Positive(t, o.size)
		assert.Equal(t, wire.Principal{}, c.Principal)
		assert.Zero(t, next.handled)
	})
}
