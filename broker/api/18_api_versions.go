package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/wire"
)

// ApiVersions, key 18, versions 0 to 4.
//
//	1  throttle time
//	2  throttling after the answer instead of before it (no change here)
//	3  flexible; the client's software name and version (KIP-511), features (KIP-584)
//	4  features whose lowest version is 0 are listed
//
// The answer always has header version 0, and a request of a version that is
// not served is answered in the layout of version 0, so that a newer client can
// step down (KIP-511). Kafka 3.9 in ZooKeeper mode has no features to list; of
// them only the epoch is told.
func (d *Dispatcher) apiVersions(c *call, req *kmsg.ApiVersionsRequest) {
	if req.Version >= 3 {
		if !softwareName(req.ClientSoftwareName) || !softwareName(req.ClientSoftwareVersion) {
			resp := kmsg.NewPtrApiVersionsResponse()
			resp.ErrorCode = kerr.InvalidRequest.Code
			c.answer(resp)
			return
		}
		c.Conn.ClientSoftwareName = req.ClientSoftwareName
		c.Conn.ClientSoftwareVersion = req.ClientSoftwareVersion
	}
	resp := wire.APIVersions(req.Version)
	if d.cfg.FeaturesEpoch != nil {
		resp.FinalizedFeaturesEpoch = d.cfg.FeaturesEpoch()
	}
	c.answer(resp)
}

// apiVersionsUnsupported answers a version that is not served.
func (c *call) apiVersionsUnsupported() {
	c.header.Version = 0
	c.answer(wire.UnsupportedAPIVersions())
}

// softwareName tells whether s is letters, digits, '-' and '.', with a letter or
// digit at both ends: KIP-511's rule for names that end up in metrics.
func softwareName(s string) bool {
	for i := 0; i < len(s); i++ {
		b := s[i]
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9':
		case (b == '-' || b == '.') && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return s != ""
}
