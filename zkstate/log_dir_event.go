package zkstate

import "context"

// A broker whose log directory failed tells the controller by a numbered notification (KIP-112), before
// inter.broker.protocol.version 3.x as after.

// Paths of the notifications.
const (
	LogDirEventNotificationPath = "/log_dir_event_notification"
	logDirEventPrefix           = "log_dir_event_"
)

const logDirFailed = 1 // the only event there is

// EncodeLogDirEvent writes the data of a notification by a broker.
func EncodeLogDirEvent(broker int32) []byte {
	var w jsonWriter
	w.open('{')
	w.key("version")
	w.int(1)
	w.key("broker")
	w.int(int64(broker))
	w.key("event")
	w.int(logDirFailed)
	w.close('}')
	return w.buf
}

// DecodeLogDirEvent reads which broker's log directories changed.
func DecodeLogDirEvent(data []byte) (int32, error) {
	o := parseObject("log directory event", data)
	return o.int32("broker"), o.wrapped()
}

// NotifyLogDirs tells the controller that a log directory of the broker failed, or came back: it asks for all replicas of
// the broker upon either.
func (c *Client) NotifyLogDirs(ctx context.Context, broker int32) error {
	return c.notify(ctx, LogDirEventNotificationPath+"/"+logDirEventPrefix, EncodeLogDirEvent(broker))
}
