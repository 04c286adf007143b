package wiretap

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is a frame as clients send it.
func request(req kmsg.Request, correlation int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("c")).AppendRequest(nil, req, correlation)
}

// response is a frame as brokers send it.
func response(resp kmsg.Response, correlation int32) []byte {
	body := []byte{byte(correlation >> 24), byte(correlation >> 16), byte(correlation >> 8), byte(correlation)}
	if resp.IsFlexible() {
		body = append(body, 0)
	}
	body = resp.AppendTo(body)
	n := len(body)
	return append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, body...)
}

// tapped is a connection with a tap on it, and its other end.
func tapped(t *testing.T, hooks Hooks, keys ...kmsg.Key) (client, broker net.Conn) {
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
	return New(hooks, keys...).listen(near, "there:1"), far
}

func TestAskedAndAnsweredIsAnExchange(t *testing.T) {
	var asked []kmsg.Request
	var answered []*Exchange
	client, broker := tapped(t, Hooks{Sent: func(_ string, r kmsg.Request) { asked = append(asked, r) }, Answered: func(x *Exchange) { answered = append(answered, x) }}, kmsg.Heartbeat, kmsg.EndTxn)
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.SetVersion(4)
	beat.Group, beat.Generation, beat.MemberID = "g", 7, "m"
	end := kmsg.NewPtrEndTxnRequest()
	end.SetVersion(1)
	end.TransactionalID, end.Commit = "t", true
	other := kmsg.NewPtrMetadataRequest()
	other.SetVersion(9)

	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = client.Write(append(append(request(beat, 1), request(other, 2)...), request(end, 3)...))
	}()
	_, err := io.ReadFull(broker, make([]byte, len(request(beat, 1))+len(request(other, 2))+len(request(end, 3))))
	require.NoError(t, err)

	beaten := kmsg.NewPtrHeartbeatResponse()
	beaten.SetVersion(4)
	beaten.ErrorCode = 27
	ended := kmsg.NewPtrEndTxnResponse()
	ended.SetVersion(1)
	answers := append(response(beaten, 1), response(ended, 3)...)
	go func() { // byte by byte, as the network may have it
		for i := range answers {
			_, _ = broker.Write(answers[i : i+1])
		}
	}()
	got := make([]byte, len(answers))
	_, err = io.ReadFull(client, got)
	require.NoError(t, err)
	require.Equal(t, answers, got, "the client sees what the broker sent")

	require.Len(t, answered, 2)
	require.Equal(t, "there:1", answered[0].Broker)
	require.Equal(t, int32(7), answered[0].Request.(*kmsg.HeartbeatRequest).Generation)
	require.Equal(t, int16(27), answered[0].Response.(*kmsg.HeartbeatResponse).ErrorCode)
	require.Equal(t, "t", answered[1].Request.(*kmsg.EndTxnRequest).TransactionalID)
	require.LessOrEqual(t, answered[0].Sent, answered[0].Answered)
	<-written
	require.Len(t, asked, 2)
}

func TestWhatIsNotAnsweredIsTold(t *testing.T) {
	var answered []*Exchange
	client, broker := tapped(t, Hooks{Answered: func(x *Exchange) { answered = append(answered, x) }}, kmsg.Heartbeat)
	beat := kmsg.NewPtrHeartbeatRequest()
	go func() { _, _ = io.ReadFull(broker, make([]byte, len(request(beat, 1)))); _ = broker.Close() }()
	_, err := client.Write(request(beat, 1))
	require.NoError(t, err)
	_, err = client.Read(make([]byte, 10))
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, answered, 1)
	require.Nil(t, answered[0].Response)
	require.NoError(t, client.Close())
	require.Len(t, answered, 1, "once")
}

func TestAFrameTooLargeIsPassedOver(t *testing.T) {
	var f frames
	big := append([]byte{0, 0x20, 0, 0}, make([]byte, 0x200000)...)
	small := []byte{0, 0, 0, 1, 42}
	require.Empty(t, f.add(big[:1000]))
	require.Equal(t, [][]byte{{42}}, f.add(append(big[1000:], small...)))
	require.Equal(t, [][]byte{{42}, {42}}, f.add(append(append([]byte(nil), small...), small...)))
}
