package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const connectionsOverrides = "max.connections.per.ip.overrides"

var hostName = regexp.MustCompile(`^[0-9a-zA-Z\-%._:]*$`)

// MaxConnectionsOf returns the exceptions to max.connections.per.ip by address or host name.
func (v *Values) MaxConnectionsOf() (map[string]int, error) {
	most := map[string]int{}
	for _, item := range v.List(connectionsOverrides) {
		if item == "" {
			continue
		}
		at := strings.LastIndexByte(item, ':') // an address of IPv6 has more of them
		if at < 0 {
			return nil, v.badOverride("%q is not of the form host:number", item)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(item[at+1:]), 10, 32)
		if err != nil {
			return nil, v.badOverride("%q is not of the form host:number", item)
		}
		host := strings.TrimSpace(item[:at])
		if !hostName.MatchString(host) {
			return nil, v.badOverride("%q is not the name of a host", host)
		}
		most[host] = int(n)
	}
	return most, nil
}

func (v *Values) badOverride(reason string, what string) error {
	return &InvalidError{Name: connectionsOverrides, Value: v.String(connectionsOverrides), Reason: fmt.Sprintf(reason, what)}
}

func (v *Values) checkConnections() error {
	overrides, err := v.MaxConnectionsOf()
	if err != nil {
		return err
	}
	if v.Int("max.connections.per.ip") == 0 && len(overrides) == 0 {
		return &ContradictionError{"max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."}
	}
	return nil
}
