package wire

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestEveryRequestOfEveryVersionDecodesToWhatWasEncoded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, api := range APIs {
		for version := api.Min; version <= api.Max; version++ {
			for range 200 {
				h := Header{Key: api.Key, Version: version}
				body := asKafkaWrites(h, randomRequest(rnd, api.Key, version).AppendTo(nil))
				req, err := DecodeRequest(h, body)
				require.NoError(t, err, "%s version %d", api.Name, version)
				require.Equal(t, body, asKafkaWrites(h, req.AppendTo(nil)), "%s version %d", api.Name, version)
			}
		}
	}
}

// asKafkaWrites mends the one request that the library writes in another order than Kafka.
func asKafkaWrites(h Header, body []byte) []byte {
	if h.Key != keyStopReplica || h.Version < 4 {
		return body
	}
	mended := append([]byte(nil), body...)
	mended[4] = body[8]
	copy(mended[5:9], body[4:8])
	return mended
}

// A Kafka 3.9 controller writes its KRaft flag before its epoch; the bytes are Kafka's, for controller 7 of epoch 2.
func TestStopReplicaIsReadAsKafkaWritesIt(t *testing.T) {
	body := []byte{0, 0, 0, 7, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9, 1, 0}
	req, err := DecodeRequest(Header{Key: keyStopReplica, Version: 4}, body)
	require.NoError(t, err)
	got := req.(*kmsg.StopReplicaRequest)
	require.Equal(t, []any{int32(7), int32(2), false, int64(9)}, []any{got.ControllerID, got.ControllerEpoch, got.IsKRaftController, got.BrokerEpoch})
}

func TestBodiesThatAreCutAreRefusedAndBytesBehindThemPassedOver(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 1))
	for _, api := range APIs {
		for version := api.Min; version <= api.Max; version++ {
			h := Header{Key: api.Key, Version: version}
			body := randomRequest(rnd, api.Key, version).AppendTo(nil)
			for cut := range body {
				_, err := DecodeRequest(h, body[:cut])
				require.ErrorIs(t, err, ErrMalformed, "%s version %d, %d of %d bytes", api.Name, version, cut, len(body))
			}
			whole, err := DecodeRequest(h, asKafkaWrites(h, body))
			require.NoError(t, err, "%s version %d", api.Name, version)
			longer, err := DecodeRequest(h, append(asKafkaWrites(h, body), 0))
			require.NoError(t, err, "%s version %d, a byte more", api.Name, version)
			require.Equal(t, whole, longer, "%s version %d, a byte more", api.Name, version)
		}
	}
}

func TestEveryLayoutIsThatOfKmsg(t *testing.T) {
	for key, layout := range parsedLayouts {
		rnd := rand.New(rand.NewPCG(3, uint64(key)))
		req := kmsg.RequestForKey(key)
		for version := range req.MaxVersion() + 1 {
			for range 20 {
				filled := randomRequest(rnd, key, version)
				body := filled.AppendTo(nil)
				rest, err := inspect(layout, version, filled.IsFlexible(), body)
				require.NoError(t, err, "%s version %d", kmsg.NameForKey(key), version)
				require.Empty(t, rest, "%s version %d", kmsg.NameForKey(key), version)
			}
		}
	}
}

func TestVersionsThatAreNotServedAreRefused(t *testing.T) {
	for _, h := range []Header{{Key: 0, Version: 12}, {Key: 1, Version: 18}, {Key: 3, Version: -1}, {Key: 999}, {Key: -1}} {
		_, err := DecodeRequest(h, make([]byte, 100))
		var unsupported *UnsupportedError
		require.ErrorAs(t, err, &unsupported)
		require.Equal(t, UnsupportedError{Key: h.Key, Version: h.Version}, *unsupported)
	}
}

// What kmsg would allocate by the counts alone is 100 and more times the body.
func TestBombsAllocateNothingToSpeakOf(t *testing.T) {
	const size = 64 << 10
	for _, fillByte := range []byte{0x00, 0x01, 0x02, 0x7f} {
		for _, api := range APIs {
			for version := api.Min; version <= api.Max; version++ {
				for _, start := range bombStarts(api.Key, version) {
					body := make([]byte, size)
					for i := range body {
						body[i] = fillByte
					}
					copy(body, start)
					name := fmt.Sprintf("%s version %d filled with %#x", api.Name, version, fillByte)
					var err error
					took := allocated(func() { _, err = DecodeRequest(Header{Key: api.Key, Version: version}, body) })
					if err != nil {
						require.Less(t, took, int64(freeAllocation), name)
					} else {
						require.Less(t, took, int64(maxAmplification*size+freeAllocation), name)
					}
				}
			}
		}
	}
}

// bombStarts gives beginnings of bodies, up to inside each array of a real request, after which filler is read as
// elements without end.
func bombStarts(key, version int16) [][]byte {
	rnd := rand.New(rand.NewPCG(uint64(key), uint64(version)))
	body := randomRequest(rnd, key, version).AppendTo(nil)
	starts := [][]byte{nil}
	for i := 1; i < len(body); i += 1 + len(body)/3 {
		starts = append(starts, body[:i])
		starts = append(starts, append(body[:i:i], 0, 0x0f, 0, 0), append(body[:i:i], 0x80, 0x80, 0x3c))
	}
	return starts
}

// The bound on what decoding allocates is only worth what the estimate is.
func TestDecodingAllocatesNoMoreThanWasEstimated(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 1))
	for key, layout := range parsedLayouts {
		for version := range kmsg.RequestForKey(key).MaxVersion() + 1 {
			req := bigRequest(rnd, key, version, 30)
			body := req.AppendTo(nil)
			in := inspection{version: version, flexible: req.IsFlexible(), src: body}
			require.NoError(t, in.all(layout))
			into := kmsg.RequestForKey(key)
			into.SetVersion(version)
			took := allocated(func() { _ = into.ReadFrom(body) })
			// The allocator rounds up, and under the race detector every array is made twice.
			require.LessOrEqual(t, took, int64(2*in.cost+in.cost/4+8<<10), "%s version %d, %d bytes", kmsg.NameForKey(key), version, len(body))
		}
	}
}

func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func TestTooManyTinyElementsAreRefused(t *testing.T) {
	const topics = 1 << 20
	body := append([]byte{0}, make([]byte, 6)...) // no transaction, acks, time-out
	body = append(body, 0x81, 0x80, 0x40)         // 2^20 topics
	for range topics {
		body = append(body, 1, 1, 0) // no name, no partitions
	}
	body = append(body, 0)
	_, err := DecodeRequest(Header{Key: 0, Version: 9}, body)
	require.ErrorIs(t, err, ErrMalformed)
	require.ErrorContains(t, err, "would become")
}

func TestArraysOfShortNamesAreAccepted(t *testing.T) {
	req := kmsg.NewPtrMetadataRequest()
	for i := range 20_000 {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(fmt.Sprintf("%03x", i%4096))
		req.Topics = append(req.Topics, topic)
	}
	for version := range int16(10) {
		req.Version = version
		_, err := DecodeRequest(Header{Key: 3, Version: version}, req.AppendTo(nil))
		require.NoError(t, err, "version %d", version)
	}
}

func FuzzDecodeRequest(f *testing.F) {
	rnd := rand.New(rand.NewPCG(4, 1))
	for _, api := range APIs {
		for version := api.Min; version <= api.Max; version++ {
			f.Add(api.Key, version, asKafkaWrites(Header{Key: api.Key, Version: version}, randomRequest(rnd, api.Key, version).AppendTo(nil)))
		}
	}
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		h := Header{Key: key, Version: version}
		req, err := DecodeRequest(h, body)
		if err != nil {
			var unsupported *UnsupportedError
			if !errors.Is(err, ErrMalformed) && !errors.As(err, &unsupported) {
				t.Fatalf("an error of no kind: %v", err)
			}
			if api, ok := Lookup(key); ok && api.Serves(version) {
				if _, unfit := inspect(parsedLayouts[key], version, api.Flexible(version), body); unfit == nil {
					t.Fatalf("kmsg refuses what was found well-formed: %v", err)
				}
			}
			return
		}
		again, err := DecodeRequest(h, asKafkaWrites(h, req.AppendTo(nil)))
		if err != nil {
			t.Fatalf("cannot decode its own encoding: %v", err)
		}
		if string(again.AppendTo(nil)) != string(req.AppendTo(nil)) {
			t.Fatal("two encodings of one request")
		}
	})
}
