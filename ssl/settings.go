package ssl

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Settings looks up a setting by its name, such as ssl.keystore.location; "" stands for none.
type Settings func(name string) string

// invalid says which setting is at fault.
func invalid(name string, err error) error { return fmt.Errorf("%s: %w", name, err) }

// The values of ssl.client.auth.
var clientAuth = map[string]tls.ClientAuthType{
	"": tls.NoClientCert, "none": tls.NoClientCert, "requested": tls.VerifyClientCertIfGiven, "required": tls.RequireAndVerifyClientCert,
}

// Server is the configuration of a listener. clientAuthentication is the value of ssl.client.auth that holds for it: which one does
// depends on the listener.
func Server(of Settings, clientAuthentication string) (*tls.Config, error) {
	c, err := common(of)
	if err != nil {
		return nil, err
	}
	if len(c.Certificates) == 0 {
		return nil, errors.New("ssl.keystore.location: a listener with TLS needs a key store")
	}
	auth, known := clientAuth[strings.ToLower(clientAuthentication)]
	if !known {
		return nil, fmt.Errorf("ssl.client.auth: %q is none of none, requested, required", clientAuthentication)
	}
	c.ClientAuth, c.ClientCAs = auth, c.RootCAs
	c.RootCAs = nil
	return c, nil
}

// Client gives the configuration of connections to the broker at an address, host:port.
func Client(of Settings) (func(addr string) *tls.Config, error) {
	c, err := common(of)
	if err != nil {
		return nil, err
	}
	algorithm := of("ssl.endpoint.identification.algorithm")
	if algorithm != "" && !strings.EqualFold(algorithm, "https") {
		return nil, fmt.Errorf("ssl.endpoint.identification.algorithm: %q is neither https nor empty", algorithm)
	}
	roots := c.RootCAs
	// What crypto/tls checks by itself differs from Java in one thing: Java takes the common name of a certificate that has no
	// alternative names, as keytool makes them unless told otherwise.
	c.InsecureSkipVerify = true
	return func(addr string) *tls.Config {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			host = addr
		}
		own := c.Clone()
		own.ServerName = host
		own.VerifyConnection = func(state tls.ConnectionState) error {
			if algorithm == "" {
				return verify(state.PeerCertificates, roots, nil)
			}
			return verify(state.PeerCertificates, roots, &host)
		}
		return own
	}, nil
}

// verify checks a server's certificates, and that they are for the host unless that is nil.
func verify(certificates []*x509.Certificate, roots *x509.CertPool, host *string) error {
	if len(certificates) == 0 {
		return errors.New("the server shows no certificate")
	}
	leaf := certificates[0]
	between := x509.NewCertPool()
	for _, cert := range certificates[1:] {
		between.AddCert(cert)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err != nil || host == nil {
		return err
	}
	alternatives := len(leaf.DNSNames) + len(leaf.IPAddresses) + len(leaf.EmailAddresses) + len(leaf.URIs)
	if alternatives == 0 && net.ParseIP(*host) == nil && leaf.Subject.CommonName != "" {
		leaf = &x509.Certificate{DNSNames: []string{leaf.Subject.CommonName}}
	}
	return leaf.VerifyHostname(*host)
}

// common is what both sides have: own certificates, and whom to trust (nil: whom the system trusts).
func common(of Settings) (*tls.Config, error) {
	for _, name := range []string{"ssl.provider", "ssl.engine.factory.class"} {
		if value := of(name); value != "" {
			return nil, fmt.Errorf("%s: %s is Java code, which is not served", name, value)
		}
	}
	c := &tls.Config{}
	var err error
	if c.MinVersion, c.MaxVersion, err = versions(split(of("ssl.enabled.protocols"))); err != nil {
		return nil, invalid("ssl.enabled.protocols", err)
	}
	if c.CipherSuites, err = suites(split(of("ssl.cipher.suites"))); err != nil {
		return nil, invalid("ssl.cipher.suites", err)
	}
	keys, err := keyStore(of)
	if err != nil {
		return nil, err
	}
	if keys != nil {
		for _, key := range keys.Keys {
			c.Certificates = append(c.Certificates, key.Certificate())
		}
	}
	trust, err := trustStore(of)
	if err != nil {
		return nil, err
	}
	if trust != nil {
		c.RootCAs = trust.Trust()
	}
	return c, nil
}

func keyStore(of Settings) (s *Store, err error) {
	kind, file, password, keyPassword := of("ssl.keystore.type"), of("ssl.keystore.location"), of("ssl.keystore.password"), of("ssl.key.password")
	key, chain := of("ssl.keystore.key"), of("ssl.keystore.certificate.chain")
	inPEM := strings.EqualFold(kind, "PEM")
	named := "ssl.keystore.location"
	switch {
	case key != "" || chain != "":
		named = "ssl.keystore.key"
		switch {
		case !inPEM:
			return nil, errors.New("ssl.keystore.type: a private key can be given by itself only when it is PEM")
		case key == "" || chain == "":
			return nil, errors.New("ssl.keystore.key and ssl.keystore.certificate.chain: one is not enough")
		case file != "":
			return nil, errors.New("ssl.keystore.location: is given beside ssl.keystore.key")
		}
		s, err = parsePEM([]byte(chain), []byte(key), keyPassword)
	case file == "":
		return nil, nil
	case inPEM && password != "":
		return nil, errors.New("ssl.keystore.password: does not go with PEM, only ssl.key.password does")
	case !inPEM && password == "":
		return nil, errors.New("ssl.keystore.password: is missing")
	default:
		s, err = Load(kindOr(kind), file, password, keyPassword)
	}
	if err != nil {
		return nil, invalid(named, err)
	}
	if len(s.Keys) == 0 {
		return nil, invalid(named, errors.New("holds no private key"))
	}
	if !s.Keys[0].complete() {
		return nil, invalid(named, errors.New("the first certificate is not that of the private key"))
	}
	return s, nil
}

func trustStore(of Settings) (s *Store, err error) {
	kind, file, password, certificates := of("ssl.truststore.type"), of("ssl.truststore.location"), of("ssl.truststore.password"), of("ssl.truststore.certificates")
	inPEM := strings.EqualFold(kind, "PEM")
	named := "ssl.truststore.location"
	switch {
	case certificates != "":
		named = "ssl.truststore.certificates"
		if !inPEM {
			return nil, errors.New("ssl.truststore.type: certificates can be given by themselves only when it is PEM")
		}
		if file != "" {
			return nil, errors.New("ssl.truststore.location: is given beside ssl.truststore.certificates")
		}
		s, err = parsePEM([]byte(certificates), nil, "")
	case file == "":
		return nil, nil
	case inPEM && password != "":
		return nil, errors.New("ssl.truststore.password: does not go with PEM")
	default:
		s, err = Load(kindOr(kind), file, password, "")
	}
	if err != nil {
		return nil, invalid(named, err)
	}
	return s, nil
}

func kindOr(kind string) string {
	if kind == "" {
		return "JKS"
	}
	return kind
}

var versionNames = []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"} // tls.VersionTLS10 and on

// versions turns the list of protocols into a range.
func versions(names []string) (lowest, highest uint16, err error) {
	if len(names) == 0 {
		names = []string{"TLSv1.2", "TLSv1.3"}
	}
	var on []int
	for _, name := range names {
		i := slices.Index(versionNames, name)
		if i < 0 {
			return 0, 0, fmt.Errorf("%s is not served", name)
		}
		on = append(on, i)
	}
	slices.Sort(on)
	on = slices.Compact(on)
	if first, last := on[0], on[len(on)-1]; last-first+1 != len(on) {
		return 0, 0, fmt.Errorf("leaves out a version between %s and %s, which cannot be done", versionNames[first], versionNames[last])
	}
	return tls.VersionTLS10 + uint16(on[0]), tls.VersionTLS10 + uint16(on[len(on)-1]), nil
}

// suites finds cipher suites by name. Those of TLS 1.3 are always on.
func suites(names []string) ([]uint16, error) {
	var ids []uint16
	known := append(tls.CipherSuites(), tls.InsecureCipherSuites()...)
	for _, name := range names {
		i := slices.IndexFunc(known, func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s is not served", name)
		}
		ids = append(ids, known[i].ID)
	}
	return ids, nil
}

func split(list string) []string {
	var items []string
	for _, item := range strings.Split(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
