package zkstate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/zkstate/embedded/proto"
)

func TestAConfirmationIsReadWhenAllOfItIsThere(t *testing.T) {
	password := []byte("0123456789abcdef")
	for _, withReadOnly := range []bool{true, false} { // servers before 3.4 send no such byte
		packet := proto.ConnectResponse(6000, -7, password, withReadOnly)
		for n := range packet {
			_, whole, err := parseConfirmation(packet[:n])
			require.NoError(t, err)
			require.False(t, whole, "%d bytes", n)
		}
		c, whole, err := parseConfirmation(append(packet, "the next packet"...))
		require.NoError(t, err)
		require.True(t, whole)
		assert.Equal(t, confirmation{timeout: 6 * time.Second, session: SessionKey{ID: -7, Password: password}}, c)
	}
}

func TestWhatIsNoConfirmationIsRefusedBeforeItIsRead(t *testing.T) {
	for name, sent := range map[string]string{
		"HTTP":                               "HTTP/1.1 400 Bad Request",
		"a length below zero":                "\xff\xff\xff\xff",
		"too short for a session":            "\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00",
		"longer than any":                    "\x00\x00\x10\x01",
		"a password beyond the packet's end": "\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x7f\xff\xff\xff",
	} {
		_, whole, err := parseConfirmation([]byte(sent))
		assert.ErrorIs(t, err, errNotZooKeeper, name)
		assert.False(t, whole, name)
	}
}

func FuzzConfirmation(f *testing.F) {
	f.Add(proto.ConnectResponse(6000, 7, make([]byte, 16), true))
	f.Add(proto.ConnectResponse(0, 0, nil, false))
	f.Add([]byte("\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		c, whole, err := parseConfirmation(sent)
		if (!whole || err != nil) && (c.session.ID != 0 || c.session.Password != nil) {
			t.Fatalf("a session was read from part of a packet: %q", sent)
		}
	})
}
