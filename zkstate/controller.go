package zkstate

import (
	"context"
	"fmt"
	"strconv"
)

// The controller: /controller is the ephemeral node of the one that was elected, /controller_epoch counts elections.

// Paths of the controller.
const (
	ControllerPath      = "/controller"
	ControllerEpochPath = "/controller_epoch"
)

// Controller is the data of ControllerPath.
type Controller struct {
	Version     int32 // 1; since Kafka 3.4 it is 2, with KRaftEpoch
	BrokerID    int32
	TimestampMs int64
	KRaftEpoch  int32 // -1: the controller is a ZooKeeper broker
}

// Encode writes the node as the Kafka of that version does.
func (c Controller) Encode() []byte {
	var w jsonWriter
	w.open('{')
	w.key("version")
	w.int(int64(c.Version))
	w.key("brokerid")
	w.int(int64(c.BrokerID))
	w.key("timestamp")
	w.str(strconv.FormatInt(c.TimestampMs, 10))
	if c.Version >= 2 {
		w.key("kraftControllerEpoch")
		w.int(int64(c.KRaftEpoch))
	}
	w.close('}')
	return w.buf
}

// DecodeController reads any version of the node.
func DecodeController(data []byte) (Controller, error) {
	o := parseObject("controller", data)
	c := Controller{Version: o.int32Or("version", 1), BrokerID: o.int32("brokerid"), TimestampMs: o.numberOr("timestamp", -1),
		KRaftEpoch: o.int32Or("kraftControllerEpoch", -1)}
	return c, o.wrapped()
}

// EncodeControllerEpoch writes the data of ControllerEpochPath: the number as text.
func EncodeControllerEpoch(epoch int32) []byte { return strconv.AppendInt(nil, int64(epoch), 10) }

// DecodeControllerEpoch reads the data of ControllerEpochPath.
func DecodeControllerEpoch(data []byte) (int32, error) {
	n, err := strconv.ParseInt(string(data), 10, 32)
	if err != nil {
		return 0, &MalformedError{What: "controller epoch", Err: fmt.Errorf("%.40q is no number", data)}
	}
	return int32(n), nil
}

// ControllerID is who is the controller now; ErrNoNode when nobody is.
func (c *Client) ControllerID(ctx context.Context) (int32, error) {
	r, err := c.One(ctx, Get(ControllerPath))
	if err != nil {
		return -1, err
	}
	node, err := DecodeController(r.Data)
	return node.BrokerID, err
}
