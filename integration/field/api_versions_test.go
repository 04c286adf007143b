package field

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// BR-001: a client from the future is told the versions of ApiVersions in the layout that everybody can read, and goes on with the same connection.
func TestAClientFromTheFutureStepsDownOnTheSameConnection(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		// Header version 2, version 99, and a body that no broker of today can know.
		frame := []byte{0, 0, 0, 0, 0, 18, 0, 99, 0, 0, 0, 77, 0, 1, 'x', 0, 0xde, 0xad, 0xbe, 0xef, 1, 2, 3}
		binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
		c.write(frame)
		body, err := c.frame()
		require.NoError(t, err)
		require.EqualValues(t, 77, binary.BigEndian.Uint32(body))
		resp, err := strictly(kmsg.NewPtrApiVersionsRequest(), body[4:])
		require.NoError(t, err)
		told := resp.(*kmsg.ApiVersionsResponse)
		assert.Equal(t, kerr.UnsupportedVersion.Code, told.ErrorCode)
		require.Len(t, told.ApiKeys, 1)
		assert.EqualValues(t, 18, told.ApiKeys[0].ApiKey)
		assert.EqualValues(t, 0, told.ApiKeys[0].MinVersion)

		req := at(3, kmsg.NewPtrApiVersionsRequest())
		req.ClientSoftwareName, req.ClientSoftwareVersion = "future", "9.9"
		full := ask[*kmsg.ApiVersionsResponse](c, req)
		assert.Zero(t, full.ErrorCode)
		assert.Greater(t, len(full.ApiKeys), 10)
	})
}

// BR-001, its neighbours: what the client calls itself must be a name.
func TestAClientWithoutAProperNameIsToldSo(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		for _, name := range []string{"", " ", "-x", "a b", "<img src=x>"} {
			req := at(3, kmsg.NewPtrApiVersionsRequest())
			req.ClientSoftwareName, req.ClientSoftwareVersion = name, "1.0"
			resp := ask[*kmsg.ApiVersionsResponse](dial(t, addr), req)
			assert.Equal(t, kerr.InvalidRequest.Code, resp.ErrorCode, "%q", name)
			assert.Empty(t, resp.ApiKeys, "%q", name)
		}
	})
}

// BR-011: a version of another API that is not served, and an API that does not exist, end the connection; they do not hang it.
func TestWhatIsNotServedEndsTheConnection(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		for _, head := range [][]byte{{0, 3, 0, 99}, {0, 0, 0, 99}, {0, 3, 0xff, 0xff}, {3, 0xe8, 0, 0}, {0xff, 0xff, 0, 0}} {
			c := dial(t, addr)
			c.write(append(append([]byte{0, 0, 0, 14}, head...), 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0))
			c.requireClosed()
		}
	})
}
