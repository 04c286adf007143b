package ssl

import (
	"crypto/ecdsa"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files in testdata are keytool's own (JDK 17): a key "server" with its certificate, and that certificate as a trusted one.
func read(t testing.TB, name string) []byte {
	file, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return file
}

func TestWhatKeytoolWroteIsRead(t *testing.T) {
	keys, err := parseJKS(read(t, "key.jks"), "sesame", "sesame")
	require.NoError(t, err)
	require.Len(t, keys.Keys, 1)
	private, ok := keys.Keys[0].Private.(*ecdsa.PrivateKey)
	require.True(t, ok)
	require.Len(t, keys.Keys[0].Chain, 1)
	require.True(t, private.PublicKey.Equal(keys.Keys[0].Chain[0].PublicKey))
	trust, err := parseJKS(read(t, "trust.jks"), "sesame", "")
	require.NoError(t, err)
	require.True(t, trust.Trusted[0].Equal(keys.Keys[0].Chain[0]))
}

func TestAWrongPasswordAndDamageAreTold(t *testing.T) {
	file := read(t, "key.jks")
	_, err := parseJKS(file, "simsim", "sesame")
	require.ErrorIs(t, err, ErrPassword)
	file[40] ^= 1
	_, err = parseJKS(file, "sesame", "sesame")
	require.ErrorIs(t, err, ErrPassword)
	_, err = parseJKS([]byte("PK"), "sesame", "sesame")
	require.ErrorIs(t, err, ErrMalformed)
	_, err = parseJKS(make([]byte, 100), "sesame", "sesame")
	require.ErrorIs(t, err, ErrMalformed)
}

// FuzzJKS looks behind the checksum, which would keep the fuzzer out.
func FuzzJKS(f *testing.F) {
	for _, name := range []string{"key.jks", "trust.jks"} {
		f.Add(read(f, name)[12:])
	}
	f.Fuzz(func(t *testing.T, entries []byte) {
		r, s := &jksReader{buf: entries}, &Store{}
		for s.jksEntry(r, wide("sesame")) == nil {
			require.Less(t, len(r.buf), len(entries))
			entries = r.buf
		}
	})
}
