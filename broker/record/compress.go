package record

// Compress appends src, compressed, to dst. level is DefaultLevel or a level of the codec as Kafka counts them (KIP-390):
// gzip 1..9, lz4 1..17, zstd -131072..22.
func Compress(c Codec, level int, dst, src []byte) ([]byte, error) { panic("not yet") }

// Decompress returns all of src decompressed, at most l.MaxDecompressed bytes.
func Decompress(c Codec, src []byte, l Limits) ([]byte, error) { panic("not yet") }
