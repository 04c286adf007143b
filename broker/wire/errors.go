package wire

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// ErrMalformed is wrapped by every error about bytes that are not what their header promises.
var ErrMalformed = errors.New("malformed request")

// UnsupportedError says that a request asks for an API, or for a version of one, that is not served.
type UnsupportedError struct {
	Key, Version int16
}

func (e *UnsupportedError) Error() string {
	if api, ok := Lookup(e.Key); ok {
		return fmt.Sprintf("%s version %d is not served (%d to %d are)", api.Name, e.Version, api.Min, api.Max)
	}
	return fmt.Sprintf("API key %d is not served (version %d was asked)", e.Key, e.Version)
}

// Code gives the protocol's error code for err, and the message that goes beside it where an API has a field for
// one. The message is nil when it would only repeat what the code says. An error that neither is nor wraps a
// *kerr.Error is a fault of this server: UNKNOWN_SERVER_ERROR, with no detail for the client.
func Code(err error) (int16, *string) {
	if err == nil {
		return 0, nil
	}
	var known *kerr.Error
	if !errors.As(err, &known) {
		return kerr.UnknownServerError.Code, nil
	}
	if err == error(known) {
		return known.Code, nil
	}
	message := err.Error()
	return known.Code, &message
}
