package wire

import (
	"encoding/binary"
	"fmt"
)

// skipTags steps over a section of tagged fields, of which there may be at most limit.
func skipTags(src []byte, limit uint64) ([]byte, error) {
	count, src, err := uvarint(src)
	if err != nil {
		return nil, err
	}
	if count > limit {
		return nil, fmt.Errorf("%w: %d tagged fields", ErrMalformed, count)
	}
	for ; count > 0; count-- {
		var size uint64
		if _, src, err = uvarint(src); err != nil {
			return nil, err
		}
		if size, src, err = uvarint(src); err != nil {
			return nil, err
		}
		if size > uint64(len(src)) {
			return nil, fmt.Errorf("%w: tagged field of %d bytes, %d are left", ErrMalformed, size, len(src))
		}
		src = src[size:]
	}
	return src, nil
}

func uvarint(src []byte) (uint64, []byte, error) {
	value, n := binary.Uvarint(src)
	if n <= 0 || value > 1<<32-1 {
		return 0, nil, fmt.Errorf("%w: bad variable-length integer", ErrMalformed)
	}
	return value, src[n:], nil
}

// SkipTags steps over the tagged fields of a header.
func SkipTags(src []byte) ([]byte, error) { return skipTags(src, maxHeaderTags) }
