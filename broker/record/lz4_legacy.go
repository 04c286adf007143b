package record

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Kafka's first LZ4 frames, the only ones in message format v0, carry a header checksum that was computed from the
// start of the frame instead of from behind its magic number (KAFKA-3160, mended for v1). Other readers refuse them.

const lz4Magic = 0x184d2204

// breakLZ4HeaderChecksum gives a frame of our own, which has neither content size nor dictionary, the checksum that readers
// of format v0 expect.
func breakLZ4HeaderChecksum(frame []byte) {
	const end = 6
	frame[end] = byte(xxh32(frame[:end]) >> 8)
}

// withLZ4HeaderChecksum returns the frame with the checksum that the format asks for.
func withLZ4HeaderChecksum(frame []byte) []byte {
	const flags = 4
	if len(frame) < 7 || binary.LittleEndian.Uint32(frame) != lz4Magic {
		return frame
	}
	end := flags + 2
	if frame[flags]&0x08 != 0 { // content size
		end += 8
	}
	if frame[flags]&0x01 != 0 { // dictionary id
		end += 4
	}
	if end >= len(frame) {
		return frame
	}
	out := slices.Clone(frame)
	out[end] = byte(xxh32(out[flags:end]) >> 8)
	return out
}

// xxh32 is the XXH32 hash, seed 0, of fewer than 16 bytes.
func xxh32(p []byte) uint32 {
	const (
		prime1 uint32 = 2654435761
		prime2 uint32 = 2246822519
		prime3 uint32 = 3266489917
		prime4 uint32 = 668265263
		prime5 uint32 = 374761393
	)
	h := prime5 + uint32(len(p))
	for ; len(p) >= 4; p = p[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(p)*prime3, 17) * prime4
	}
	for _, c := range p {
		h = bits.RotateLeft32(h+uint32(c)*prime5, 11) * prime1
	}
	h = (h ^ h>>15) * prime2
	h = (h ^ h>>13) * prime3
	return h ^ h>>16
}
