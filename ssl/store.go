package ssl

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	pkcs12 "software.sslmate.com/src/go-pkcs12"
)

// Key is a private key and its certificates, the key's own first.
type Key struct {
	Private any
	Chain   []*x509.Certificate
}

// Certificate is the key as crypto/tls takes it.
func (k Key) Certificate() tls.Certificate {
	cert := tls.Certificate{PrivateKey: k.Private}
	for _, link := range k.Chain {
		cert.Certificate = append(cert.Certificate, link.Raw)
	}
	return cert
}

// Store is what a key store holds.
type Store struct {
	Keys    []Key
	Trusted []*x509.Certificate
}

// Trust is the certificates that the store vouches for: trusted ones, and those of its own keys, as Java takes it.
func (s *Store) Trust() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, cert := range s.Trusted {
		pool.AddCert(cert)
	}
	for _, key := range s.Keys {
		if len(key.Chain) > 0 {
			pool.AddCert(key.Chain[0])
		}
	}
	return pool
}

// Load reads a key store. kind is JKS, PKCS12 or PEM, in any case; as in Java, either of the first two also takes a file of the
// other. keyPassword is that of the keys, "" meaning the store's password (for PEM: that they are not encrypted).
func Load(kind, file, password, keyPassword string) (*Store, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var s *Store
	switch strings.ToUpper(kind) {
	case "PEM":
		s, err = parsePEM(text, text, keyPassword)
	case "JKS", "PKCS12":
		if keyPassword == "" {
			keyPassword = password
		}
		if len(text) >= 4 && binary.BigEndian.Uint32(text) == jksMagic {
			s, err = parseJKS(text, password, keyPassword)
		} else {
			s, err = parsePKCS12(text, password, keyPassword)
		}
	default:
		return nil, fmt.Errorf("key stores of type %s are not served; JKS, PKCS12 and PEM are", kind)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// parsePKCS12 reads a store of trusted certificates, or of one key.
func parsePKCS12(file []byte, password, keyPassword string) (*Store, error) {
	if keyPassword != password {
		return nil, errors.New("a PKCS12 key store whose key has another password than the store is not served")
	}
	trusted, err := pkcs12.DecodeTrustStore(file, password)
	if err == nil {
		return &Store{Trusted: trusted}, nil
	}
	if errors.Is(err, pkcs12.ErrIncorrectPassword) || errors.Is(err, pkcs12.ErrDecryption) {
		return nil, ErrPassword
	}
	private, first, others, err := pkcs12.DecodeChain(file, password)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return sortOut(private, append([]*x509.Certificate{first}, others...)), nil
}

// sortOut tells the chain of a key from the trusted certificates beside it: keytool puts both into one PKCS12 file in an order of
// its own, and the library does not say which is which. A certificate of the chain that is trusted, too, is there twice.
func sortOut(private any, certificates []*x509.Certificate) *Store {
	key := Key{Private: private}
	take := func(fits func(*x509.Certificate) bool) bool {
		i := slices.IndexFunc(certificates, fits)
		if i >= 0 {
			key.Chain = append(key.Chain, certificates[i])
			certificates = slices.Delete(certificates, i, i+1)
		}
		return i >= 0
	}
	take(func(c *x509.Certificate) bool { return Key{private, []*x509.Certificate{c}}.complete() })
	for more := len(key.Chain) > 0; more; {
		last := key.Chain[len(key.Chain)-1]
		more = !bytes.Equal(last.RawIssuer, last.RawSubject) && take(func(c *x509.Certificate) bool { return last.CheckSignatureFrom(c) == nil })
	}
	return &Store{Keys: []Key{key}, Trusted: certificates}
}

// parsePEM reads certificates, which are both the chain of the key and trusted, and the one key that keys holds, if any.
func parsePEM(certificates, keys []byte, keyPassword string) (*Store, error) {
	s := &Store{}
	for block, rest := pem.Decode(certificates); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		s.Trusted = append(s.Trusted, cert)
	}
	if len(s.Trusted) == 0 {
		return nil, errors.New("no certificate in PEM")
	}
	for block, rest := pem.Decode(keys); block != nil; block, rest = pem.Decode(rest) {
		if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
			continue
		}
		if len(s.Keys) > 0 {
			return nil, errors.New("more than one private key in PEM")
		}
		private, err := privateKey(block, keyPassword)
		if err != nil {
			return nil, err
		}
		s.Keys = []Key{{Private: private, Chain: s.Trusted}}
	}
	return s, nil
}

func privateKey(block *pem.Block, password string) (any, error) {
	switch block.Type {
	case "ENCRYPTED PRIVATE KEY":
		return decryptKey(block.Bytes, password)
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	}
	return x509.ParsePKCS8PrivateKey(block.Bytes)
}

// complete tells whether the first certificate of a key is the key's own.
func (k Key) complete() bool {
	private, ok := k.Private.(crypto.Signer)
	if !ok || len(k.Chain) == 0 {
		return false
	}
	public, ok := private.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(k.Chain[0].PublicKey)
}
