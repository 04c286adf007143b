package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"barnabas/zkstate/embedded/jks"
)

// tlsKeys are the ssl.* keys of a zoo.cfg that matter to a server, with their values.
type tlsKeys map[string]string

// config builds what the secure port needs. Keystores may be JKS or PEM, told by ssl.keyStore.type or the file's name; clients must
// show a certificate that the trust store vouches for, unless ssl.clientAuth says otherwise. The certificate opens the door and no
// more: the ACL scheme x509 is not there.
func (k tlsKeys) config() (*tls.Config, error) {
	keys, err := k.store("keyStore")
	if err != nil {
		return nil, err
	}
	if len(keys.Keys) == 0 {
		return nil, errors.New("ssl.keyStore.location: holds no private key")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	for _, key := range keys.Keys {
		cert := tls.Certificate{PrivateKey: key.Private}
		for _, link := range key.Chain {
			cert.Certificate = append(cert.Certificate, link.Raw)
		}
		c.Certificates = append(c.Certificates, cert)
	}
	switch auth := strings.ToLower(k["ssl.clientAuth"]); auth {
	case "none":
		return c, nil
	case "want":
		c.ClientAuth = tls.VerifyClientCertIfGiven
	case "", "need":
		c.ClientAuth = tls.RequireAndVerifyClientCert
	default:
		return nil, fmt.Errorf("ssl.clientAuth: %q is none of none, want, need", auth)
	}
	trust, err := k.store("trustStore")
	if err != nil {
		return nil, err
	}
	c.ClientCAs = x509.NewCertPool()
	for _, cert := range trust.Trusted {
		c.ClientCAs.AddCert(cert)
	}
	return c, nil
}

// store reads the keystore that ssl.<which>.location names.
func (k tlsKeys) store(which string) (*jks.Store, error) {
	prefix := "ssl." + which + "."
	file, kind := k[prefix+"location"], strings.ToUpper(k[prefix+"type"])
	if file == "" {
		return nil, fmt.Errorf("secureClientPort needs %slocation", prefix)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%slocation: %w", prefix, err)
	}
	var s *jks.Store
	if kind == "PEM" || kind == "" && strings.HasSuffix(strings.ToLower(file), ".pem") {
		s, err = readPEM(text)
	} else {
		s, err = jks.Parse(text, k[prefix+"password"])
	}
	if err != nil {
		return nil, fmt.Errorf("%slocation: %s: %w", prefix, file, err)
	}
	return s, nil
}

// readPEM takes the certificates of a file both as the chain of its key and as trusted.
func readPEM(text []byte) (*jks.Store, error) {
	s := &jks.Store{}
	var private any
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var err error
		switch block.Type {
		case "CERTIFICATE":
			var cert *x509.Certificate
			if cert, err = x509.ParseCertificate(block.Bytes); err == nil {
				s.Trusted = append(s.Trusted, cert)
			}
		case "PRIVATE KEY":
			private, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			private, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			private, err = x509.ParseECPrivateKey(block.Bytes)
		}
		if err != nil {
			return nil, err
		}
	}
	if private != nil {
		s.Keys = []jks.Key{{Private: private, Chain: s.Trusted}}
	}
	return s, nil
}
