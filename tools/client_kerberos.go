package tools

import (
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"

	"barnabas/broker/auth"
	"barnabas/config"
	"barnabas/kerberos"
)

// kerberosLogin is the client's side of GSSAPI, as the login modules say.
func kerberosLogin(settings map[string]string, modules []config.LoginModule) (sasl.Mechanism, error) {
	login, found, err := config.KerberosLogin(modules, settings["sasl.kerberos.service.name"])
	if err != nil {
		return nil, &badArgument{err.Error()}
	}
	if !found {
		return nil, &badArgument{"neither sasl.jaas.config nor the section KafkaClient of a JAAS file that KAFKA_OPTS names has an entry of Krb5LoginModule, by which GSSAPI authenticates"}
	}
	tickets := kerberos.NewTickets(kerberos.Account{
		ConfigFile: config.KerberosFile(os.Getenv("KAFKA_OPTS")), Cache: login.Cache, Principal: login.Principal, KeyTable: login.KeyTable, Now: time.Now,
	})
	return auth.ClientGSSAPI(tickets, login.Service), nil
}
