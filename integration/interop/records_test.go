package interop

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
)

// Every client sends and reads the same sequence: record i has the key i and a value of letters whose length and content follow from i, so that a reader can tell what is lost, doubled,
// moved or changed without any memory. Letters only, since some clients send lines.

// recordsPerClient is how many records go through each client, over all codecs.
func recordsPerClient() int {
	if n, err := strconv.Atoi(os.Getenv("BARNABAS_INTEROP_RECORDS")); err == nil {
		return n
	}
	if lane.Required() {
		return 1_000_000
	}
	return 50_000
}

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// valueOf is the value of record i: mostly short, sometimes empty, now and then some kilobytes.
func valueOf(i int) []byte {
	x := uint64(i)*0x9E3779B97F4A7C15 + 1
	next := func() uint64 { x ^= x << 13; x ^= x >> 7; x ^= x << 17; return x }
	size := int(next() % 160)
	if next()%500 == 0 {
		size += int(next() % 8000)
	}
	value := make([]byte, size)
	for j := 0; j < size; {
		bits := next()
		for k := 0; k < 10 && j < size; k++ { // ten letters of six bits from each number
			value[j] = letters[bits&63]
			bits >>= 6
			j++
		}
	}
	return value
}

func keyOf(i int) []byte { return strconv.AppendInt(nil, int64(i), 10) }

// checker judges a sequence as it is read.
type checker struct {
	topic string
	next  int
}

func (c *checker) saw(key, value []byte) error {
	if !bytes.Equal(key, keyOf(c.next)) {
		return fmt.Errorf("%s: record %d has the key %q", c.topic, c.next, key)
	}
	if want := valueOf(c.next); !bytes.Equal(value, want) {
		return fmt.Errorf("%s: record %d has %d bytes that differ from the %d sent", c.topic, c.next, len(value), len(want))
	}
	c.next++
	return nil
}

// lines writes the sequence as key, tab, value lines for clients that send lines.
func lines(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines")
	f, err := os.Create(path)
	require.NoError(t, err)
	w := bufio.NewWriter(f)
	for i := range n {
		_, _ = w.Write(keyOf(i))
		_ = w.WriteByte('\t')
		_, _ = w.Write(valueOf(i))
		_ = w.WriteByte('\n')
	}
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
	return path
}

// checkLines judges what such a client printed.
func checkLines(topic string, r io.Reader, n int) error {
	c := checker{topic: topic}
	for scan := bufio.NewReader(r); ; {
		line, err := scan.ReadBytes('\n')
		if len(line) > 0 {
			key, value, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
			if !ok {
				return fmt.Errorf("%s: after %d records came the line %q", topic, c.next, line)
			}
			if err := c.saw(key, value); err != nil {
				return err
			}
		}
		if err != nil {
			break
		}
	}
	if c.next != n {
		return fmt.Errorf("%s: %d records came back of %d", topic, c.next, n)
	}
	return nil
}
