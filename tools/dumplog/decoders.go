package dumplog

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"barnabas/tools/options"
)

// parsed is what a decoder makes of a record; nil is not printed.
type parsed struct{ key, value *string }

// parser chooses the decoder that the arguments ask for; nil if contents are not to be printed.
func (d *dumper) parser(set *options.Set) (func(logRecord) (parsed, error), error) {
	switch {
	case set.Has("offsets-decoder"):
		if d.newer {
			return offsetsAsJSON, nil
		}
		return offsetsAsText, nil
	case set.Has("transaction-log-decoder"):
		return transactions, nil
	case set.Has("cluster-metadata-decoder"), set.Has("remote-log-metadata-decoder"):
		return nil, fmt.Errorf("records of KRaft's metadata log and of tiered storage are not supported")
	}
	key, err := bytesDecoder(set, "key-decoder-class")
	if err != nil {
		return nil, err
	}
	value, err := bytesDecoder(set, "value-decoder-class")
	if err != nil {
		return nil, err
	}
	if !set.Has("print-data-log") && !set.Has("key-decoder-class") && !set.Has("value-decoder-class") {
		return nil, nil
	}
	return func(r logRecord) (p parsed, err error) {
		if r.Key != nil {
			if p.key, err = key(r.Key); err != nil {
				return p, err
			}
		}
		if r.Value != nil {
			p.value, err = value(r.Value)
		}
		return p, err
	}, nil
}

// bytesDecoder finds the decoder that stands for a Java class.
func bytesDecoder(set *options.Set, option string) (func([]byte) (*string, error), error) {
	class, err := set.Value(option)
	if err != nil {
		return nil, err
	}
	class = strings.TrimPrefix(strings.TrimPrefix(class, "kafka.serializer."), "org.apache.kafka.tools.api.")
	switch class {
	case "", "StringDecoder":
		return func(p []byte) (*string, error) { return text(javaString(p)) }, nil
	case "LongDecoder":
		return func(p []byte) (*string, error) {
			if len(p) < 8 {
				return nil, &exception{"java.nio.BufferUnderflowException", fmt.Sprintf("%d bytes are no long", len(p))}
			}
			return text(strconv.FormatInt(int64(binary.BigEndian.Uint64(p)), 10))
		}, nil
	case "IntegerDecoder":
		return func(p []byte) (*string, error) {
			if len(p) < 4 {
				return nil, &exception{"java.nio.BufferUnderflowException", fmt.Sprintf("%d bytes are no integer", len(p))}
			}
			return text(strconv.FormatInt(int64(int32(binary.BigEndian.Uint32(p))), 10))
		}, nil
	}
	return nil, fmt.Errorf("--%s %s: Java classes cannot be loaded here; leave the option out to print strings", option, class)
}

func text(s string) (*string, error) { return &s, nil }
