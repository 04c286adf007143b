package tools

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/admin/cluster"
)

// Quotas of clients, users and addresses, and the credentials of users, have APIs of their own (KIP-546, KIP-554).

// quotaPart is how the protocol names a part of a quota's entity.
var quotaPart = map[string]string{usersType: admin.UserPart, clientsType: admin.ClientIDPart, ipsType: admin.IPPart}

// shownPart is how people read it, in the order in which parts are shown.
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
func (s *configsByBroker) quotasOf(a configsAsked) ([]kmsg.DescribeClientQuotasResponseEntry, error) {
	req := kmsg.NewPtrDescribeClientQuotasRequest()
	if err := s.needAPI(req); err != nil {
		return nil, err
	}
	req.Strict = true
	for i, t := range a.types {
		c := kmsg.NewDescribeClientQuotasRequestComponent()
		c.EntityType, c.MatchType = quotaPart[t], kmsg.QuotasMatchType(admin.MatchAny)
		if i < len(a.names) {
			if c.MatchType = kmsg.QuotasMatchType(admin.MatchDefault); a.names[i] != "" {
				c.MatchType, c.Match = kmsg.QuotasMatchType(admin.MatchExact), kmsg.StringPtr(a.names[i])
			}
		}
		req.Components = append(req.Components, c)
	}
	resp, err := req.RequestWith(context.Background(), s.client)
	if err != nil {
		return nil, err
	}
	return resp.Entries, answered(resp.ErrorCode, resp.ErrorMessage)
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

func quotaLine(e kmsg.DescribeClientQuotasResponseEntry) string {
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
		values[i] = v.Key + "=" + admin.JavaDouble(v.Value)
	}
	sort.Strings(values)
	return fmt.Sprintf("Quota configs for %s are %s", strings.Join(who, ", "), strings.Join(values, ", "))
}

func (s *configsByBroker) describeCredentials(users []string) error {
	req := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	if err := s.needAPI(req); err != nil {
		return err
	}
	for _, name := range users {
		u := kmsg.NewDescribeUserSCRAMCredentialsRequestUser()
		u.Name = name
		req.Users = append(req.Users, u)
	}
	resp, err := req.RequestWith(context.Background(), s.client)
	if err != nil {
		return err
	}
	if err := answered(resp.ErrorCode, resp.ErrorMessage); err != nil {
		return err
	}
	sort.Slice(resp.Results, func(i, j int) bool { return resp.Results[i].User < resp.Results[j].User })
	for _, r := range resp.Results {
		if r.ErrorCode != 0 {
			continue // has none
		}
		var infos []string
		for _, c := range r.CredentialInfos {
			infos = append(infos, fmt.Sprintf("%s=iterations=%d", admin.ScramMechanism(c.Mechanism), c.Iterations))
		}
		fmt.Fprintf(s.f.stdout, "SCRAM credential configs for user-principal '%s' are %s\n", r.User, strings.Join(infos, ", "))
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
		return len(existing) > 0 && slices.ContainsFunc(existing[0].Values, func(v kmsg.DescribeClientQuotasResponseEntryValue) bool { return v.Key == key })
	}
	if err := missingSettings(a.remove, has); err != nil {
		return err
	}
	entry := kmsg.NewAlterClientQuotasRequestEntry()
	for i, t := range a.types {
		e := kmsg.NewAlterClientQuotasRequestEntryEntity()
		if e.Type = quotaPart[t]; a.names[i] != "" {
			e.Name = kmsg.StringPtr(a.names[i])
		}
		entry.Entity = append(entry.Entity, e)
	}
	for _, add := range a.add {
		op := kmsg.NewAlterClientQuotasRequestEntryOp()
		op.Key = add.key
		if op.Value, err = strconv.ParseFloat(add.value, 64); err != nil {
			return &badArgument{fmt.Sprintf("Cannot parse quota configuration value for %s: %s", add.key, add.value)}
		}
		entry.Ops = append(entry.Ops, op)
	}
	for _, key := range a.remove {
		op := kmsg.NewAlterClientQuotasRequestEntryOp()
		op.Key, op.Remove = key, true
		entry.Ops = append(entry.Ops, op)
	}
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.Entries = append(req.Entries, entry)
	resp, err := req.RequestWith(context.Background(), s.client)
	if err != nil {
		return err
	}
	for _, e := range resp.Entries {
		if err := answered(e.ErrorCode, e.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

const saltSize = 24

// alterCredentials sends salted passwords: a broker never sees the password.
func (s *configsByBroker) alterCredentials(a configsAsked) error {
	req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	for _, key := range a.remove {
		d := kmsg.NewAlterUserSCRAMCredentialsRequestDeletion()
		d.Name, d.Mechanism = a.names[0], int8(scramMechanism(key))
		req.Deletions = append(req.Deletions, d)
	}
	for _, add := range a.add {
		iterations, password, err := scramSecret(add.key, add.value)
		if err != nil {
			return err
		}
		u := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
		u.Name, u.Mechanism, u.Iterations, u.Salt = a.names[0], int8(scramMechanism(add.key)), int32(iterations), newSalt()
		if u.SaltedPassword, err = admin.SaltPassword(scramMechanism(add.key), password, u.Salt, iterations); err != nil {
			return err
		}
		req.Upsertions = append(req.Upsertions, u)
	}
	if err := s.needAPI(req); err != nil {
		return err
	}
	resp, err := req.RequestWith(context.Background(), s.client)
	if err != nil {
		return err
	}
	var failed []error
	for _, r := range resp.Results {
		if err := answered(r.ErrorCode, r.ErrorMessage); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func scramMechanism(name string) admin.ScramMechanism {
	if name == admin.ScramSHA512.String() {
		return admin.ScramSHA512
	}
	return admin.ScramSHA256
}

func newSalt() []byte {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	return salt
}
