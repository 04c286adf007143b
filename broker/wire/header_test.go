package wire

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// appendHeader encodes a request header.
func appendHeader(dst []byte, key, version int16, correlation int32, clientID *string, tags bool) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(key))
	dst = binary.BigEndian.AppendUint16(dst, uint16(version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlation))
	if clientID == nil {
		dst = append(dst, 0xff, 0xff)
	} else {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(*clientID)))
		dst = append(dst, *clientID...)
	}
	if tags {
		dst = append(dst, 0)
	}
	return dst
}

func TestHeadersOfEveryVersionAreReadAsTheClientWritesThem(t *testing.T) {
	for _, client := range []*string{nil, kmsg.StringPtr(""), kmsg.StringPtr("rdkafka")} {
		format := kmsg.NewRequestFormatter()
		if client != nil {
			format = kmsg.NewRequestFormatter(kmsg.FormatterClientID(*client))
		}
		for _, api := range APIs {
			for version := api.Min; version <= api.Max; version++ {
				req := kmsg.RequestForKey(api.Key)
				req.SetVersion(version)
				frame := format.AppendRequest(nil, req, 42)[4:]
				if api.Key == 7 && version == 0 {
					frame = req.AppendTo(frame[:8:8]) // kmsg leaves the body out
				}
				h, body, err := ParseHeader(frame)
				require.NoError(t, err)
				require.Equal(t, string(req.AppendTo(nil)), string(body), "%s version %d", api.Name, version)
				require.Equal(t, []int32{int32(api.Key), int32(version), 42}, []int32{int32(h.Key), int32(h.Version), h.CorrelationID})
				if api.Key != 7 || version > 0 { // ControlledShutdown 0 has no client id
					require.Equal(t, client, h.ClientID)
				}
			}
		}
	}
}

func TestTaggedFieldsOfAHeaderAreSkipped(t *testing.T) {
	frame := appendHeader(nil, 3, 12, 1, kmsg.StringPtr("c"), false)
	frame = append(frame, 2, 0, 3, 'a', 'b', 'c', 9, 0)
	_, body, err := ParseHeader(append(frame, 'b', 'o', 'd', 'y'))
	require.NoError(t, err)
	require.Equal(t, "body", string(body))
}

func TestBrokenHeadersAreRefused(t *testing.T) {
	whole := appendHeader(nil, 3, 12, 1, kmsg.StringPtr("client"), true)
	for cut := range whole {
		_, _, err := ParseHeader(whole[:cut])
		require.ErrorIs(t, err, ErrMalformed, "%d bytes", cut)
	}
	_, _, err := ParseHeader([]byte{0, 3, 0, 1, 0, 0, 0, 0, 0xff, 0xfe})
	require.ErrorIs(t, err, ErrMalformed, "client id of length -2")
	_, _, err = ParseHeader(append(whole[:len(whole)-1], 0xff, 0xff, 0xff, 0xff, 0x0f))
	require.ErrorIs(t, err, ErrMalformed, "4 billion tagged fields")
}

func TestResponsesBeginWithTheirLengthAndCorrelation(t *testing.T) {
	for _, api := range APIs {
		for version := api.Min; version <= api.Max; version++ {
			resp := kmsg.ResponseForKey(api.Key)
			frame := AppendResponse([]byte("before"), Header{Key: api.Key, Version: version, CorrelationID: 77}, resp)[6:]
			require.EqualValues(t, len(frame)-4, binary.BigEndian.Uint32(frame))
			require.EqualValues(t, 77, binary.BigEndian.Uint32(frame[4:]))
			rest := frame[8:]
			if api.Flexible(version) && api.Key != 18 {
				require.Zero(t, rest[0])
				rest = rest[1:]
			}
			require.Equal(t, version, resp.GetVersion())
			require.Equal(t, resp.AppendTo(nil), rest, "%s version %d", api.Name, version)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	for _, api := range APIs {
		for version := api.Min; version <= api.Max; version++ {
			f.Add(appendHeader(nil, api.Key, version, 5, kmsg.StringPtr("client"), api.Flexible(version)))
		}
	}
	f.Add(appendHeader(nil, 18, 99, 5, nil, true))
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, body, err := ParseHeader(frame)
		var unsupported *UnsupportedError
		switch {
		case err == nil:
			if len(body) > len(frame)-8 {
				t.Fatal("a body longer than its frame")
			}
			_, _ = DecodeRequest(h, body)
		case errors.As(err, &unsupported):
			if h.Key != unsupported.Key || h.Version != unsupported.Version {
				t.Fatal("the error is about another API")
			}
		case !errors.Is(err, ErrMalformed):
			t.Fatalf("an error of no kind: %v", err)
		}
	})
}
