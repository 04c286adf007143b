package record

import "fmt"

// Codec is the compression of a batch: the low three bits of its attributes.
type Codec int8

// The codecs of Kafka; Zstd since 2.1 (KIP-110).
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// String is the name as Kafka's configuration and tools spell it.
func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("unknown(%d)", int8(c))
}

// DefaultLevel asks Compress for the codec's own default level.
const DefaultLevel = -1 << 31

// Limits bound what reading a batch may cost.
type Limits struct {
	// MaxDecompressed is the most bytes that one batch may decompress to; 0 means DefaultMaxDecompressed.
	MaxDecompressed int
}

// DefaultMaxDecompressed is generous beside any batch that a client means to send.
const DefaultMaxDecompressed = 1 << 30

func (l Limits) max() int {
	if l.MaxDecompressed > 0 {
		return l.MaxDecompressed
	}
	return DefaultMaxDecompressed
}
