package ssl

// Java's own key stores (JKS). They are only read, and only as much as is needed: private keys with their chains, and trusted
// certificates.
//
// Layout (big endian): magic, version, count; per entry a tag, an alias, a time, then for a key its encrypted PKCS#8 form and its
// chain, for a trusted certificate that certificate; at the end the SHA-1 of the password, a constant and all before it. The key's
// cipher is Sun's own: a stream of SHA-1 sums chained from a salt. It protects little; it is what these files use.

import (
	"crypto/sha1"
	"crypto/subtle"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
)

const (
	jksMagic = 0xfeedfeed
	tagKey   = 1
	tagTrust = 2
	seed     = "Mighty Aphrodite"
)

// ErrMalformed says that a file is not a key store of the kind expected, or is damaged; ErrPassword, that the password is wrong (or
// the file damaged).
var (
	ErrMalformed = errors.New("not a key store, or a damaged one")
	ErrPassword  = errors.New("wrong password, or a damaged key store")
)

var sunKeyProtector = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 42, 2, 17, 1, 1}

// jksReader stays at the end once something did not fit.
type jksReader struct {
	buf []byte
	bad bool
}

func (r *jksReader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.buf) {
		r.bad = true
		return nil
	}
	out := r.buf[:n]
	r.buf = r.buf[n:]
	return out
}

func (r *jksReader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *jksReader) text() {
	if b := r.take(2); b != nil {
		r.take(int(binary.BigEndian.Uint16(b)))
	}
}

func (r *jksReader) blob() []byte { return r.take(int(int32(r.uint32()))) }

func (r *jksReader) certificate() (*x509.Certificate, error) {
	r.text() // its kind; X.509 is the only one
	der := r.blob()
	if r.bad {
		return nil, ErrMalformed
	}
	return x509.ParseCertificate(der)
}

// parseJKS reads a key store. Without a password nothing vouches for the file, as in Java; keys have keyPassword.
func parseJKS(file []byte, password, keyPassword string) (*Store, error) {
	if len(file) < 12+sha1.Size {
		return nil, ErrMalformed
	}
	body, sum := file[:len(file)-sha1.Size], file[len(file)-sha1.Size:]
	r := &jksReader{buf: body}
	if m, v := r.uint32(), r.uint32(); m != jksMagic || v != 1 && v != 2 {
		return nil, ErrMalformed
	}
	if password != "" {
		h := sha1.New()
		h.Write(wide(password))
		h.Write([]byte(seed))
		h.Write(body)
		if subtle.ConstantTimeCompare(h.Sum(nil), sum) != 1 {
			return nil, ErrPassword
		}
	}
	s := &Store{}
	for n := r.uint32(); n > 0; n-- {
		if err := s.jksEntry(r, wide(keyPassword)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// jksEntry reads one entry.
func (s *Store) jksEntry(r *jksReader, secret []byte) error {
	tag := r.uint32()
	r.text()
	r.take(8)
	switch tag {
	case tagTrust:
		cert, err := r.certificate()
		if err != nil {
			return err
		}
		s.Trusted = append(s.Trusted, cert)
	case tagKey:
		sealed := r.blob()
		if r.bad {
			return ErrMalformed
		}
		key := Key{}
		var err error
		if key.Private, err = openJKS(sealed, secret); err != nil {
			return err
		}
		for n := r.uint32(); n > 0; n-- {
			cert, err := r.certificate()
			if err != nil {
				return err
			}
			key.Chain = append(key.Chain, cert)
		}
		s.Keys = append(s.Keys, key)
	default:
		return fmt.Errorf("%w: entry of kind %d", ErrMalformed, tag)
	}
	if r.bad {
		return ErrMalformed
	}
	return nil
}

// wide is a password as Java hashes it: UTF-16, big endian.
func wide(password string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(password)) {
		out = binary.BigEndian.AppendUint16(out, u)
	}
	return out
}

// openJKS decrypts a private key.
func openJKS(sealed, secret []byte) (any, error) {
	var info struct {
		Algorithm struct {
			ID         asn1.ObjectIdentifier
			Parameters asn1.RawValue `asn1:"optional"`
		}
		Data []byte
	}
	if rest, err := asn1.Unmarshal(sealed, &info); err != nil || len(rest) != 0 {
		return nil, fmt.Errorf("%w: private key", ErrMalformed)
	}
	if !info.Algorithm.ID.Equal(sunKeyProtector) || len(info.Data) < 2*sha1.Size {
		return nil, fmt.Errorf("%w: private key under an unknown cipher", ErrMalformed)
	}
	chain, plain := info.Data[:sha1.Size], append([]byte(nil), info.Data[sha1.Size:len(info.Data)-sha1.Size]...)
	for at := 0; at < len(plain); at += sha1.Size {
		sum := sha1.Sum(append(append([]byte(nil), secret...), chain...))
		chain = sum[:]
		n := min(sha1.Size, len(plain)-at)
		subtle.XORBytes(plain[at:at+n], plain[at:at+n], chain[:n])
	}
	check := sha1.Sum(append(append([]byte(nil), secret...), plain...))
	if subtle.ConstantTimeCompare(check[:], info.Data[len(info.Data)-sha1.Size:]) != 1 {
		return nil, ErrPassword
	}
	return x509.ParsePKCS8PrivateKey(plain)
}
