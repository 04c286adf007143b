package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/wire"
)

// code is the error code and the message for the client. What ran out of time
// before it got an answer, mostly from ZooKeeper, is REQUEST_TIMED_OUT.
func code(err error) (int16, *string) {
	if isTimeout(err) {
		return kerr.RequestTimedOut.Code, nil
	}
	return wire.Code(err)
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// faults logs the errors that have no code of their own: clients are told
// UNKNOWN_SERVER_ERROR and no more, operators have to know why.
func (d *Dispatcher) faults(doing string, errs ...error) {
	for _, err := range errs {
		var known *kerr.Error
		if err == nil || errors.As(err, &known) || isTimeout(err) {
			continue
		}
		d.log.WithError(err).Error(doing + " failed")
	}
}
