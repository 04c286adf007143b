// Package zktls reads the file that the tools' option zk-tls-config-file names: what zookeeper.ssl.* are for a broker, for a tool that works on ZooKeeper directly (KIP-515).
package zktls

import (
	"crypto/tls"
	"fmt"

	"barnabas/config"
	"barnabas/ssl"
)

// Read gives how to speak to the ZooKeeper server at an address, host:port; nil is in plaintext, as when there is no file or it does not say zookeeper.ssl.client.enable=true. Settings behind prefix
// come before those without; all others are passed over, so that a broker's own file will do.
func Read(file, prefix string) (func(addr string) *tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	v, err := config.Load(file, nil)
	if err != nil {
		return nil, fmt.Errorf("zk-tls-config-file: %w", err)
	}
	secure, err := ssl.ZooKeeper(func(name string) string {
		if value, set := v.Lookup(prefix + name); set {
			return value
		}
		return v.String(name)
	})
	if err != nil {
		return nil, fmt.Errorf("zk-tls-config-file %s: %w", file, err)
	}
	return secure, nil
}
