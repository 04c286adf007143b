package record

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Recompress returns a batch with the same records in another codec, in memory of its own. level is 0 or DefaultLevel for
// the codec's default. The records are not looked at: their deltas, and the header they count from, stay as they are.
func (b Batch) Recompress(c Codec, level int, l Limits) (Batch, error) {
	var src stream
	if err := src.open(b.Codec(), b.Payload(), l); err != nil {
		return nil, err
	}
	defer src.close()
	records, err := src.all()
	if err != nil {
		return nil, err
	}
	if level == 0 {
		level = DefaultLevel
	}
	room := len(records)
	if c != None {
		room /= 2
	}
	out, err := Compress(c, level, append(make([]byte, 0, HeaderSize+room), b[:HeaderSize]...), records)
	if err != nil {
		return nil, err
	}
	if int64(len(out)) > math.MaxInt32 {
		return nil, fmt.Errorf("batch of %d bytes", len(out))
	}
	binary.BigEndian.PutUint32(out[offLength:], uint32(len(out)-Overhead))
	out[offAttributes+1] = out[offAttributes+1]&^attrCodecMask | byte(c)
	Batch(out).setCRC()
	return Batch(out), nil
}
