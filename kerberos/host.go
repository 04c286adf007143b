package kerberos

import (
	"context"
	"net"
	"strings"
)

// ServiceHost is the host in a service's principal for an address, host:port, as Java finds it: the name of an IP address, and the long form of a short name where the network knows one. It is
// in lower case.
func ServiceHost(ctx context.Context, addr string, lookup Lookup) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	if net.ParseIP(host) != nil {
		if names, err := lookup.LookupAddr(ctx, host); err == nil && len(names) > 0 {
			host = strings.TrimSuffix(names[0], ".")
		}
		return strings.ToLower(host)
	}
	host = strings.ToLower(host)
	if strings.Contains(host, ".") {
		return host
	}
	addrs, err := lookup.LookupHost(ctx, host)
	if err != nil || len(addrs) == 0 {
		return host
	}
	names, _ := lookup.LookupAddr(ctx, addrs[0])
	for _, name := range names {
		if name = strings.ToLower(strings.TrimSuffix(name, ".")); strings.HasPrefix(name, host+".") {
			return name
		}
	}
	return host
}

// Lookup is what is asked of the network about names; a net.Resolver has it.
type Lookup interface {
	LookupAddr(ctx context.Context, addr string) (names []string, err error)
	LookupHost(ctx context.Context, host string) (addrs []string, err error)
}
