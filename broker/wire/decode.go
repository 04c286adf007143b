package wire

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DecodeRequest decodes the body of a request that ParseHeader accepted. Byte fields alias body; strings do not.
// Errors wrap ErrMalformed or are an *UnsupportedError.
func DecodeRequest(h Header, body []byte) (kmsg.Request, error) {
	api, served := Lookup(h.Key)
	if !served || !api.Serves(h.Version) {
		return nil, &UnsupportedError{Key: h.Key, Version: h.Version}
	}
	req := kmsg.RequestForKey(h.Key)
	req.SetVersion(h.Version)
	if err := req.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("%w: %s version %d: %v", ErrMalformed, api.Name, h.Version, err)
	}
	return req, nil
}
