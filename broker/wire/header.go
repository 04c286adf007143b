package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Header is what stands before the body of a request: header version 0 for ControlledShutdown 0, version 2 (with
// tagged fields) where the API's version is flexible, version 1 elsewhere.
type Header struct {
	Key, Version  int16
	CorrelationID int32
	// ClientID is nil when the client sent null. It is a copy, and outlives the frame.
	ClientID *string
}

const maxHeaderTags = 16

// ParseHeader splits a frame (without its length) into header and body; body aliases frame. The header of an API
// or version that is not served is read as far as every version agrees, so that the answer can carry its
// correlation id, and comes with an *UnsupportedError. Other errors wrap ErrMalformed.
func ParseHeader(frame []byte) (h Header, body []byte, err error) {
	if len(frame) < 8 {
		return h, nil, fmt.Errorf("%w: %d bytes are too few for a header", ErrMalformed, len(frame))
	}
	h.Key = int16(binary.BigEndian.Uint16(frame))
	h.Version = int16(binary.BigEndian.Uint16(frame[2:]))
	h.CorrelationID = int32(binary.BigEndian.Uint32(frame[4:]))
	body = frame[8:]
	if h.Key == keyControlledShutdown && h.Version == 0 {
		return h, body, nil
	}
	api, served := Lookup(h.Key)
	if !served || !api.Serves(h.Version) {
		return h, nil, &UnsupportedError{Key: h.Key, Version: h.Version}
	}
	if h.ClientID, body, err = readClientID(body); err != nil {
		return h, nil, err
	}
	if api.Flexible(h.Version) {
		body, err = skipTags(body, maxHeaderTags)
	}
	return h, body, err
}

// readClientID reads a nullable string with a length of two bytes, which flexible headers keep too.
func readClientID(src []byte) (*string, []byte, error) {
	if len(src) < 2 {
		return nil, nil, fmt.Errorf("%w: header ends before the client id", ErrMalformed)
	}
	n := int(int16(binary.BigEndian.Uint16(src)))
	src = src[2:]
	if n == -1 {
		return nil, src, nil
	}
	if n < 0 || n > len(src) {
		return nil, nil, fmt.Errorf("%w: client id of %d bytes, %d are left", ErrMalformed, n, len(src))
	}
	id := string(src[:n])
	return &id, src[n:], nil
}

// AppendResponse appends a whole answer (length, header, body) to dst. The body is encoded at h.Version. Header
// version 1 (with tagged fields) precedes a flexible body, except for ApiVersions: a client asks it before it
// knows whether this broker understands flexible headers.
func AppendResponse(dst []byte, h Header, resp kmsg.Response) []byte {
	resp.SetVersion(h.Version)
	start := len(dst)
	dst = appendResponseHeader(dst, h, resp.IsFlexible())
	dst = resp.AppendTo(dst)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// appendResponseHeader appends room for the length, and the header.
func appendResponseHeader(dst []byte, h Header, flexible bool) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.CorrelationID))
	if flexible && h.Key != KeyApiVersions {
		dst = append(dst, 0)
	}
	return dst
}
