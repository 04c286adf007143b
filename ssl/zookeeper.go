package ssl

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
)

// The connections to ZooKeeper have settings of their own (KIP-515). They are the ssl.* settings of a client behind the prefix zookeeper., but for what this file says.

// clientSockets are the classes of ZooKeeper's client that zookeeper.clientCnxnSocket may name, and whether they speak TLS.
var clientSockets = map[string]bool{"ClientCnxnSocketNetty": true, "ClientCnxnSocketNIO": false}

// ZooKeeper gives the configuration of connections to the ZooKeeper server at an address, host:port; nil when zookeeper.ssl.client.enable is not true. Unlike Kafka, which goes in plaintext where
// zookeeper.clientCnxnSocket is not set, it takes the first at its word. What cannot be served is an error that begins with the setting's name.
func ZooKeeper(of Settings) (func(addr string) *tls.Config, error) {
	socket := of("zookeeper.clientCnxnSocket")
	encrypts, known := clientSockets[strings.TrimPrefix(socket, "org.apache.zookeeper.")]
	if socket != "" && !known {
		return nil, fmt.Errorf("zookeeper.clientCnxnSocket: %s is Java code, which is not served", socket)
	}
	if !isTrue(of("zookeeper.ssl.client.enable")) {
		return nil, nil
	}
	if socket != "" && !encrypts {
		return nil, fmt.Errorf("zookeeper.clientCnxnSocket: %s speaks no TLS, which zookeeper.ssl.client.enable wants; org.apache.zookeeper.ClientCnxnSocketNetty does", socket)
	}
	for _, name := range []string{"zookeeper.ssl.crl.enable", "zookeeper.ssl.ocsp.enable"} {
		if isTrue(of(name)) {
			return nil, fmt.Errorf("%s: whether certificates were revoked cannot be checked", name)
		}
	}
	configs, err := Client(zooKeeperSettings{of}.client)
	if err != nil {
		return nil, fmt.Errorf("zookeeper.%w", err) // it begins with the name behind the prefix
	}
	return configs, nil
}

func isTrue(value string) bool { return strings.EqualFold(value, "true") }

type zooKeeperSettings struct{ of Settings }

// client answers for a setting of a client. The password of a store in PEM is that of the key in it; only one version of TLS is on by default.
func (s zooKeeperSettings) client(name string) string {
	switch name {
	case "ssl.keystore.type", "ssl.truststore.type":
		return s.kind(strings.TrimSuffix(name, "type"))
	case "ssl.keystore.password", "ssl.truststore.password":
		if s.kind(strings.TrimSuffix(name, "password")) == "PEM" {
			return ""
		}
	case "ssl.key.password":
		if s.kind("ssl.keystore.") != "PEM" {
			return ""
		}
		name = "ssl.keystore.password"
	case "ssl.enabled.protocols":
		if s.of("zookeeper."+name) == "" {
			name = "ssl.protocol"
		}
	}
	return s.of("zookeeper." + name)
}

// kind is the type of a store, which the end of its file's name tells if nothing else does.
func (s zooKeeperSettings) kind(store string) string {
	if kind := s.of("zookeeper." + store + "type"); kind != "" {
		return strings.ToUpper(kind)
	}
	switch strings.ToLower(filepath.Ext(s.of("zookeeper." + store + "location"))) {
	case ".pem":
		return "PEM"
	case ".p12":
		return "PKCS12"
	}
	return "JKS"
}
