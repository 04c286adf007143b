package api

import "github.com/twmb/franz-go/pkg/kmsg"

// toController hands a request to the controller in this process, which answers
// NOT_CONTROLLER if it is not active.
func (d *Dispatcher) toController(c *call, req kmsg.Request) {
	d.deps.Controller.Do(req, func(resp kmsg.Response) { c.answer(resp) })
}

// emptyText is the message of an answer without an error where Kafka writes an
// empty one, not null.
func emptyText(code int16, message *string) *string {
	if code == 0 && message == nil {
		return new(string)
	}
	return message
}
