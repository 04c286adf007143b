package wire

import (
	"bytes"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DecodeRequest decodes the body of a request that ParseHeader accepted. What stands behind the request is passed over, as
// by Kafka: kafka-go ends DescribeACLs with a byte too many. Byte fields alias body; strings do not. It allocates nothing before it knows that the body is well-formed, and then at
// most 16 bytes for each of the body and 64 KiB. Errors wrap ErrMalformed or are an *UnsupportedError.
func DecodeRequest(h Header, body []byte) (kmsg.Request, error) {
	api, served := Lookup(h.Key)
	if !served || !api.Serves(h.Version) {
		return nil, &UnsupportedError{Key: h.Key, Version: h.Version}
	}
	if _, err := inspect(parsedLayouts[h.Key], h.Version, api.Flexible(h.Version), body); err != nil {
		return nil, fmt.Errorf("%w: %s version %d: %w", ErrMalformed, api.Name, h.Version, err)
	}
	req := kmsg.RequestForKey(h.Key)
	req.SetVersion(h.Version)
	if h.Key == keyStopReplica && h.Version >= 4 {
		body = stopReplicaAsRead(body)
	}
	if err := req.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("%w: %s version %d: %w", ErrMalformed, api.Name, h.Version, err)
	}
	return req, nil
}

const keyStopReplica = 5

// stopReplicaAsRead puts two fields of StopReplica v4 into the order in which the library reads them: Kafka writes the
// flag of a KRaft controller (KIP-866) before the controller epoch, the library expects it behind. The layout was
// inspected before, so the bytes are there.
func stopReplicaAsRead(body []byte) []byte {
	swapped := bytes.Clone(body)
	copy(swapped[4:8], body[5:9])
	swapped[8] = body[4]
	return swapped
}
