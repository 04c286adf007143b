package tools

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/admin/cluster"
	"barnabas/config"
)

// Quotas of clients, users and addresses, and the credentials of users, have APIs of their own (KIP-546, KIP-554).

// quotaPart is how the protocol names a part of a quota's entity.
var quotaPart = map[string]string{usersType: admin.UserPart, clientsType: admin.ClientIDPart, ipsType: admin.IPPart}

// shownParts are how people read them, in the order in which parts are shown.
var shownParts = [][2]string{{admin.UserPart, "user-principal"}, {admin.ClientIDPart, "client-id"}, {admin.IPPart, "ip"}}

// needAPI refuses what brokers do not serve with a sentence that says what to do.
func (s *configsByBroker) needAPI(req kmsg.Request) error {
	ok, err := cluster.Serves(context.Background(), s.client, req.Key())
	if err == nil && !ok {
		return &badArgument{fmt.Sprintf("The brokers do not serve %s; quotas and credentials can be read and changed with --zookeeper in place of --bootstrap-server", kmsg.NameForKey(req.Key()))}
	}
	return err
}

// quotasOf reads the quotas of the entities that are asked for, and of no others.
func (s *configsByBroker) quotasOf(a configsAsked) ([]admin.QuotaDescription, error) {
	if err := s.needAPI(kmsg.NewPtrDescribeClientQuotasRequest()); err != nil {
		return nil, err
	}
	var filters []admin.QuotaFilter
	for i, t := range a.types {
		f := admin.QuotaFilter{Type: quotaPart[t], Match: admin.MatchAny}
		if i < len(a.names) {
			if f.Match = admin.MatchDefault; a.names[i] != "" {
				f.Match, f.Name = admin.MatchExact, &a.names[i]
			}
		}
		filters = append(filters, f)
	}
	return cluster.New(s.client).Quotas(context.Background(), true, filters...)
}

func (s *configsByBroker) describeQuotas(a configsAsked) error {
	entries, err := s.quotasOf(a)
	if err != nil {
		return err
	}
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = quotaLine(e)
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Fprintln(s.f.stdout, line)
	}
	if slices.Contains(a.types, usersType) && !slices.Contains(a.types, clientsType) && !slices.Contains(a.names, "") {
		return s.describeCredentials(a.names)
	}
	return nil
}

func quotaLine(e admin.QuotaDescription) string {
	var who []string
	for _, shown := range shownParts {
		for _, part := range e.Entity {
			switch {
			case part.Type != shown[0]:
			case part.Name == nil:
				who = append(who, "the default "+shown[1])
			default:
				who = append(who, fmt.Sprintf("%s '%s'", shown[1], *part.Name))
			}
		}
	}
	values := make([]string, len(e.Values))
	for i, v := range e.Values {
		values[i] = v.Key + "=" + config.FormatDouble(v.Value)
	}
	sort.Strings(values)
	return fmt.Sprintf("Quota configs for %s are %s", strings.Join(who, ", "), strings.Join(values, ", "))
}

func (s *configsByBroker) describeCredentials(users []string) error {
	if err := s.needAPI(kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()); err != nil {
		return err
	}
	found, err := cluster.New(s.client).Users(context.Background(), users...)
	if err != nil {
		return err
	}
	for _, u := range found {
		if u.Err != nil {
			continue
		}
		var infos []string
		for _, c := range u.Credentials {
			infos = append(infos, fmt.Sprintf("%s=iterations=%d", c.Mechanism, c.Iterations))
		}
		fmt.Fprintf(s.f.stdout, "SCRAM credential configs for user-principal '%s' are %s\n", u.User, strings.Join(infos, ", "))
	}
	return nil
}

func isScram(key string) bool { return slices.Contains(scramMechanismNames, key) }

// wrongQuotaKeys says which keys an entity cannot have, or that quotas and credentials cannot be changed at once.
func wrongQuotaKeys(a configsAsked) error {
	isQuota := func(key string) bool { return slices.Contains(clientQuotaKeys, key) }
	check := func(keys []string, verb string) error {
		var unknown []string
		for _, key := range keys {
			switch {
			case a.types[0] == ipsType && key != "connection_creation_rate", a.types[0] != ipsType && !isQuota(key) && !isScram(key):
				unknown = append(unknown, key)
			case isScram(key) && slices.Contains(a.types, clientsType):
				unknown = append(unknown, key)
			}
		}
		if unknown == nil {
			return nil
		}
		what := "quota and SCRAM credential configs can be " + verb + " for 'users'"
		switch {
		case a.types[0] == ipsType:
			return &badArgument{"Only connection quota configs can be added for 'ips' using --bootstrap-server. Unexpected config names: " + strings.Join(unknown, ",")}
		case slices.Contains(a.types, clientsType):
			what = "quota configs can be " + verb + " for 'clients'"
		}
		return &badArgument{fmt.Sprintf("Only %s using --bootstrap-server. Unexpected config names: Set(%s)", what, strings.Join(unknown, ", "))}
	}
	if err := check(keysOf(a.add), "added"); err != nil {
		return err
	}
	if err := check(a.remove, "deleted"); err != nil {
		return err
	}
	all := append(keysOf(a.add), a.remove...)
	if slices.ContainsFunc(all, isScram) {
		if slices.Contains(a.names, "") {
			return &badArgument{"The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using --bootstrap-server."}
		}
		if slices.ContainsFunc(all, isQuota) {
			return &badArgument{"Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using --bootstrap-server."}
		}
	}
	return nil
}

func (s *configsByBroker) alterQuotas(a configsAsked) error {
	if err := wrongQuotaKeys(a); err != nil {
		return err
	}
	if slices.ContainsFunc(append(keysOf(a.add), a.remove...), isScram) {
		return s.alterCredentials(a)
	}
	existing, err := s.quotasOf(a)
	if err != nil {
		return err
	}
	has := func(key string) bool {
		return len(existing) > 0 && slices.ContainsFunc(existing[0].Values, func(v admin.QuotaValue) bool { return v.Key == key })
	}
	if err := missingSettings(a.remove, has); err != nil {
		return err
	}
	var entity admin.QuotaEntity
	for i, t := range a.types {
		part := admin.EntityPart{Type: quotaPart[t]}
		if a.names[i] != "" {
			part.Name = &a.names[i]
		}
		entity = append(entity, part)
	}
	var ops []admin.QuotaOp
	for _, add := range a.add {
		value, err := config.ParseDouble(add.value)
		if err != nil {
			return &badArgument{fmt.Sprintf("Cannot parse quota configuration value for %s: %s", add.key, add.value)}
		}
		ops = append(ops, admin.QuotaOp{Key: add.key, Value: value})
	}
	for _, key := range a.remove {
		ops = append(ops, admin.QuotaOp{Key: key, Remove: true})
	}
	return cluster.New(s.client).AlterQuotas(context.Background(), entity, ops, false)
}

// alterCredentials sets and removes credentials of one user.
func (s *configsByBroker) alterCredentials(a configsAsked) error {
	var remove []admin.ScramMechanism
	for _, key := range a.remove {
		remove = append(remove, scramMechanism(key))
	}
	var set []cluster.NewPassword
	for _, add := range a.add {
		iterations, password, err := scramSecret(add.key, add.value)
		if err != nil {
			return err
		}
		set = append(set, cluster.NewPassword{ScramInfo: admin.ScramInfo{Mechanism: scramMechanism(add.key), Iterations: int32(iterations)}, Password: password})
	}
	if err := s.needAPI(kmsg.NewPtrAlterUserSCRAMCredentialsRequest()); err != nil {
		return err
	}
	return cluster.New(s.client).AlterUser(context.Background(), a.names[0], set, remove)
}

func scramMechanism(name string) admin.ScramMechanism {
	if name == admin.ScramSHA512.String() {
		return admin.ScramSHA512
	}
	return admin.ScramSHA256
}
