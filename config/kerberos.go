package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// krb5LoginModule is how a Java program logs in to Kerberos.
const krb5LoginModule = "com.sun.security.auth.module.Krb5LoginModule"

// Kerberos is as whom a process is known to Kerberos, and by which files.
type Kerberos struct {
	Principal string // "" with a cache: whoever it belongs to
	KeyTable  string // "" without useKeyTab
	Cache     string // of tickets; "" without useTicketCache
	Service   string // what the servers are called: the first part of their principals
}

// Who names it in messages.
func (k Kerberos) Who() string {
	if k.Principal == "" {
		return "whose tickets lie in " + k.Cache
	}
	return k.Principal
}

// KerberosLogin finds the Krb5LoginModule among login modules. configured is sasl.kerberos.service.name, which it may say itself.
func KerberosLogin(modules []LoginModule, configured string) (k Kerberos, found bool, err error) {
	at := slices.IndexFunc(modules, func(m LoginModule) bool { return m.Class == krb5LoginModule })
	if at < 0 {
		return k, false, nil
	}
	if k, err = modules[at].kerberos(); err != nil {
		return k, true, err
	}
	k.Service = modules[at].Options["serviceName"]
	switch {
	case k.Service == "":
		k.Service = configured
	case configured != "" && configured != k.Service:
		return k, true, fmt.Errorf("serviceName of the login module is %s, and sasl.kerberos.service.name is %s", k.Service, configured)
	}
	if k.Service == "" {
		return k, true, errors.New("neither sasl.kerberos.service.name nor the login module's serviceName says what brokers are called")
	}
	return k, true, nil
}

func (m LoginModule) kerberos() (k Kerberos, err error) {
	is := func(option string) bool { return strings.EqualFold(m.Options[option], "true") }
	k.Principal = m.Options["principal"]
	if is("useTicketCache") {
		k.Cache = ticketCache(m.Options["ticketCache"])
	}
	if is("useKeyTab") {
		if k.KeyTable = withoutScheme(m.Options["keyTab"]); k.KeyTable == "" || k.Principal == "" {
			return k, errors.New("useKeyTab wants keyTab and principal")
		}
	}
	if k.Cache == "" && k.KeyTable == "" {
		return k, errors.New("the login module has neither useKeyTab=true nor useTicketCache=true, and nobody can be asked for a password")
	}
	return k, nil
}

// ticketCache is where tickets lie: as named, by KRB5CCNAME, or where kinit puts them.
func ticketCache(named string) string {
	if named == "" {
		named = os.Getenv("KRB5CCNAME")
	}
	if named == "" {
		return fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())
	}
	return withoutScheme(named)
}

func withoutScheme(file string) string {
	const scheme = "FILE:"
	if len(file) > len(scheme) && strings.EqualFold(file[:len(scheme)], scheme) {
		return file[len(scheme):]
	}
	return file
}

// KerberosFile is where krb5.conf lies: where the options of a Java program say, as KAFKA_OPTS holds them, or KRB5_CONFIG, or where it always is.
func KerberosFile(javaOptions string) string {
	if file := javaProperty(javaOptions, "java.security.krb5.conf"); file != "" {
		return file
	}
	if file, _, _ := strings.Cut(os.Getenv("KRB5_CONFIG"), ":"); file != "" {
		return file
	}
	return "/etc/krb5.conf"
}
