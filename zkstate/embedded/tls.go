package embedded

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"barnabas/ssl"
)

// tlsKeys are the ssl.* keys of a zoo.cfg that matter to a server, with their values.
type tlsKeys map[string]string

// config builds what the secure port needs. Keystores may be JKS, PKCS12 or PEM, told by ssl.keyStore.type or the file's name; clients must
// show a certificate that the trust store vouches for, unless ssl.clientAuth says otherwise. The
// certificate's name is the client's identity of the scheme x509.
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
		c.Certificates = append(c.Certificates, key.Certificate())
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
	c.ClientCAs = trust.Trust()
	return c, nil
}

// certificateOf is the name in the verified certificate of the other side, as Java writes it; "" when there is none.
func certificateOf(conn net.Conn) string {
	if p, ok := conn.(*passedOn); ok {
		return p.certificate
	}
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return ""
	}
	chains := secure.ConnectionState().VerifiedChains
	if len(chains) == 0 {
		return ""
	}
	name, err := ssl.DistinguishedName(chains[0][0].RawSubject)
	if err != nil {
		return ""
	}
	return name
}

// store reads the keystore that ssl.<which>.location names.
func (k tlsKeys) store(which string) (*ssl.Store, error) {
	prefix := "ssl." + which + "."
	file, kind := k[prefix+"location"], k[prefix+"type"]
	if file == "" {
		return nil, fmt.Errorf("secureClientPort needs %slocation", prefix)
	}
	if kind == "" {
		kind = "JKS"
		if strings.HasSuffix(strings.ToLower(file), ".pem") {
			kind = "PEM"
		}
	}
	s, err := ssl.Load(kind, file, k[prefix+"password"], "")
	if err != nil {
		return nil, fmt.Errorf("%slocation: %w", prefix, err)
	}
	return s, nil
}
