package wire

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DecodeRequest decodes the body of a request that ParseHeader accepted: all of it, with nothing left over. Byte
// fields alias body; strings do not. It allocates nothing before it knows that the body is well-formed, and then at
// most 16 bytes for each of the body and 64 KiB. Errors wrap ErrMalformed or are an *UnsupportedError.
func DecodeRequest(h Header, body []byte) (kmsg.Request, error) {
	api, served := Lookup(h.Key)
	if !served || !api.Serves(h.Version) {
		return nil, &UnsupportedError{Key: h.Key, Version: h.Version}
	}
	if err := inspect(parsedLayouts[h.Key], h.Version, api.Flexible(h.Version), body); err != nil {
		return nil, fmt.Errorf("%w: %s version %d: %w", ErrMalformed, api.Name, h.Version, err)
	}
	req := kmsg.RequestForKey(h.Key)
	req.SetVersion(h.Version)
	if err := req.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("%w: %s version %d: %w", ErrMalformed, api.Name, h.Version, err)
	}
	return req, nil
}
