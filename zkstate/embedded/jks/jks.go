// Package jks reads Java keystores of the type JKS: what ssl.keyStore.location and ssl.trustStore.location of a zoo.cfg usually
// name. It only reads, and only as much as a server needs: private keys with their chains, and trusted certificates.
//
// Layout (big endian): magic, version, count; per entry a tag, an alias, a time, then for a key its encrypted PKCS#8 form and its
// chain, for a trusted certificate that certificate; at the end the SHA-1 of the password, a constant and all before it. The key's
// cipher is Sun's own: a stream of SHA-1 sums chained from a salt. It protects little; it is what these files use.
package jks

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
	magic    = 0xfeedfeed
	tagKey   = 1
	tagTrust = 2
	seed     = "Mighty Aphrodite"
)

// ErrMalformed says that a file is not a JKS keystore, or is damaged; ErrPassword, that the password is wrong (or the file damaged).
var (
	ErrMalformed = errors.New("not a JKS keystore")
	ErrPassword  = errors.New("wrong keystore password")
)

var sunKeyProtector = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 42, 2, 17, 1, 1}

// Key is a private key and its certificates, the key's own first.
type Key struct {
	Private any
	Chain   []*x509.Certificate
}

// Store is what a keystore holds.
type Store struct {
	Keys    []Key
	Trusted []*x509.Certificate
}

// reader stays at the end once something did not fit.
type reader struct {
	buf []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.buf) {
		r.bad = true
		return nil
	}
	out := r.buf[:n]
	r.buf = r.buf[n:]
	return out
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) text() {
	if b := r.take(2); b != nil {
		r.take(int(binary.BigEndian.Uint16(b)))
	}
}

func (r *reader) blob() []byte { return r.take(int(int32(r.uint32()))) }

func (r *reader) certificate() (*x509.Certificate, error) {
	r.text() // its kind; X.509 is the only one
	der := r.blob()
	if r.bad {
		return nil, ErrMalformed
	}
	return x509.ParseCertificate(der)
}

// Parse reads a keystore whose file and keys have the same password.
func Parse(file []byte, password string) (*Store, error) {
	if len(file) < 12+sha1.Size {
		return nil, ErrMalformed
	}
	body, sum := file[:len(file)-sha1.Size], file[len(file)-sha1.Size:]
	r := &reader{buf: body}
	if m, v := r.uint32(), r.uint32(); m != magic || v != 1 && v != 2 {
		return nil, ErrMalformed
	}
	secret := wide(password)
	h := sha1.New()
	h.Write(secret)
	h.Write([]byte(seed))
	h.Write(body)
	if subtle.ConstantTimeCompare(h.Sum(nil), sum) != 1 {
		return nil, ErrPassword
	}
	s := &Store{}
	for n := r.uint32(); n > 0; n-- {
		if err := s.entry(r, secret); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// entry reads one entry.
func (s *Store) entry(r *reader, secret []byte) error {
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
		if key.Private, err = open(sealed, secret); err != nil {
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

// open decrypts a private key.
func open(sealed, secret []byte) (any, error) {
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
