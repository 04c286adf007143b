// Package zkaccess tells how a tool that works on ZooKeeper directly is to reach it: by TLS as the file says that the option zk-tls-config-file names, which has what zookeeper.ssl.* are for a broker
// (KIP-515), and as whom by the JAAS file that KAFKA_OPTS names.
package zkaccess

import (
	"crypto/tls"
	"fmt"
	"time"

	"barnabas/config"
	"barnabas/kerberos"
	"barnabas/ssl"
	"barnabas/zkstate/sasl"
)

// Access is how to reach ZooKeeper.
type Access struct {
	TLS         func(addr string) *tls.Config // for the server at host:port; nil: in plaintext
	Certificate bool                          // TLS shows a certificate
	Account     sasl.Login                    // nil: nobody
}

// Known tells whether ZooKeeper learns who comes. What such a tool makes belongs to it, as in Kafka.
func (a Access) Known() bool { return a.Account != nil || a.Certificate }

// Read reads the file, "" for none, and the options of a Java program. TLS is for a file that says zookeeper.ssl.client.enable=true. Settings behind prefix come before those without; all others are
// passed over, so that a broker's own file will do.
func Read(file, prefix, javaOptions string) (a Access, err error) {
	if a.Account, err = Login(javaOptions); err != nil || file == "" {
		return a, err
	}
	v, err := config.Load(file, nil)
	if err != nil {
		return a, fmt.Errorf("zk-tls-config-file: %w", err)
	}
	of := func(name string) string {
		if value, set := v.Lookup(prefix + name); set {
			return value
		}
		return v.String(name)
	}
	if a.TLS, err = ssl.ZooKeeper(of); err != nil {
		return a, fmt.Errorf("zk-tls-config-file %s: %w", file, err)
	}
	a.Certificate = a.TLS != nil && of("zookeeper.ssl.keystore.location") != ""
	return a, nil
}

// Login is as whom ZooKeeper is to know this process, by the JAAS file that the options of a Java program name; nil: as nobody.
func Login(javaOptions string) (sasl.Login, error) {
	account, ticket, err := config.ZooKeeperLogin(javaOptions)
	switch {
	case err != nil:
		return nil, err
	case account != nil:
		return sasl.Account{User: account.User, Password: account.Password}, nil
	case ticket != nil:
		tickets := kerberos.NewTickets(kerberos.Account{
			ConfigFile: config.KerberosFile(javaOptions), Cache: ticket.Cache, Principal: ticket.Principal, KeyTable: ticket.KeyTable, Now: time.Now,
		})
		return sasl.Kerberos{Tickets: tickets, Service: ticket.Service, Who: ticket.Who()}, nil
	}
	return nil, nil
}
