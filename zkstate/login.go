package zkstate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"barnabas/zkstate/embedded/client"
	"barnabas/zkstate/embedded/proto"
	"barnabas/zkstate/sasl"
)

// go-zookeeper knows no SASL. It sends nothing before a server has confirmed its session, so the exchange takes place between the arrival of the confirmation and its being handed on:
// whatever is asked over a connection is asked by somebody whom the server knows.

// login authenticates the connection.
func (h *handshake) login(a sasl.Login) error {
	xid := int32(0)
	err := a.Login(h.server, func(token []byte) ([]byte, error) {
		xid++
		return h.saslStep(xid, token)
	})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: authenticating as %q: %w", h.RemoteAddr(), a, err)
	h.dialer.refused.Store(&err)
	var code *client.Error
	if !errors.As(err, &code) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return err // the server went away
	}
	h.dialer.denied()
	return err
}

// maxSASLAnswer bounds one answer of the server.
const maxSASLAnswer = 64 << 10

func (h *handshake) saslStep(xid int32, token []byte) ([]byte, error) {
	frame := proto.AppendInt32(proto.AppendInt32(proto.Frame(), xid), int32(proto.OpSASL))
	if _, err := h.Conn.Write(proto.Seal(proto.AppendRequest(frame, &proto.SASLRequest{Token: token}))); err != nil {
		return nil, err
	}
	var length [4]byte
	if _, err := io.ReadFull(h.buffered, length[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > maxSASLAnswer {
		return nil, errNotZooKeeper
	}
	answer := make([]byte, size)
	if _, err := io.ReadFull(h.buffered, answer); err != nil {
		return nil, err
	}
	r := proto.NewReader(answer)
	if got, _, code := r.Int32(), r.Int64(), proto.Code(r.Int32()); r.Err() == nil && got == xid && code != proto.OK {
		return nil, &client.Error{Code: code}
	} else if r.Err() != nil || got != xid {
		return nil, errNotZooKeeper
	}
	return r.Buffer(), r.Err()
}
