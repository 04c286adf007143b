package api

import "github.com/twmb/franz-go/pkg/kmsg"

// toController hands a request to the controller in this process, which answers
// NOT_CONTROLLER if it is not active.
func (d *Dispatcher) toController(c *call, req kmsg.Request) {
	d.deps.Controller.Do(req, func(resp kmsg.Response) { c.answer(resp) })
}
