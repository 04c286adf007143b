package api

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
)

// What is asked about quotas and credentials. Each question may build on what
// those before it have set.

// entity is written as "user=alice,client-id=" where nothing behind the sign
// is the default.
func entity(text string) (parts []kmsg.AlterClientQuotasRequestEntryEntity) {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		kind, name, _ := strings.Cut(part, "=")
		e := kmsg.AlterClientQuotasRequestEntryEntity{Type: kind}
		if name != "" {
			e.Name = kmsg.StringPtr(strings.TrimSuffix(name, "''"))
		}
		parts = append(parts, e)
	}
	return parts
}

func quotaEntry(who string, ops ...kmsg.AlterClientQuotasRequestEntryOp) kmsg.AlterClientQuotasRequestEntry {
	return kmsg.AlterClientQuotasRequestEntry{Entity: entity(who), Ops: ops}
}

func setQuota(key string, value float64) kmsg.AlterClientQuotasRequestEntryOp {
	return kmsg.AlterClientQuotasRequestEntryOp{Key: key, Value: value}
}

func dropQuota(key string) kmsg.AlterClientQuotasRequestEntryOp {
	return kmsg.AlterClientQuotasRequestEntryOp{Key: key, Remove: true}
}

func clientQuotasCases(r *recorder) {
	alter := func(name, door string, validate bool, entries ...kmsg.AlterClientQuotasRequestEntry) {
		r.at("49_alter_client_quotas", name, door, 0, 1, func(int16) kmsg.Request {
			req := kmsg.NewPtrAlterClientQuotasRequest()
			req.Entries, req.ValidateOnly = entries, validate
			return req
		})
	}
	alter("nothing", "PLAINTEXT", false)
	alter("only validated", "PLAINTEXT", true, quotaEntry("user=nobody", setQuota("producer_byte_rate", 5)))
	alter("a user", "PLAINTEXT", false, quotaEntry("user=alice", setQuota("producer_byte_rate", 1000), setQuota("consumer_byte_rate", 2000)))
	alter("a client, not at the controller", "B2", false, quotaEntry("client-id=app", setQuota("request_percentage", 12.5)))
	alter("a client of a user", "PLAINTEXT", false, quotaEntry("user=alice,client-id=app", setQuota("controller_mutation_rate", 3)))
	alter("defaults", "PLAINTEXT", false, quotaEntry("user=", setQuota("producer_byte_rate", 10)), quotaEntry("client-id=", setQuota("producer_byte_rate", 11)),
		quotaEntry("user=,client-id=", setQuota("producer_byte_rate", 12)))
	alter("an address", "PLAINTEXT", false, quotaEntry("ip=127.0.0.1", setQuota("connection_creation_rate", 7)), quotaEntry("ip=", setQuota("connection_creation_rate", 8)))
	alter("a name to be escaped", "PLAINTEXT", false, quotaEntry("user=CN=a b/c*%", setQuota("producer_byte_rate", 1)))
	for _, wrong := range []struct {
		name  string
		entry kmsg.AlterClientQuotasRequestEntry
	}{
		{"no entity", quotaEntry("", setQuota("producer_byte_rate", 1))},
		{"unknown kind of entity", quotaEntry("tenant=x", setQuota("producer_byte_rate", 1))},
		{"empty name", quotaEntry("user=''", setQuota("producer_byte_rate", 1))},
		{"address and user", quotaEntry("ip=127.0.0.1,user=alice", setQuota("producer_byte_rate", 1))},
		{"no address", quotaEntry("ip=no such host", setQuota("connection_creation_rate", 1))},
		{"unknown key", quotaEntry("user=alice", setQuota("nonsense", 1))},
		{"key of another entity", quotaEntry("ip=127.0.0.1", setQuota("producer_byte_rate", 1))},
		{"removed key that is unknown", quotaEntry("user=alice", dropQuota("nonsense"))},
		{"a fraction of a byte", quotaEntry("user=alice", setQuota("producer_byte_rate", 1.5))},
		{"a fraction of a connection", quotaEntry("ip=127.0.0.1", setQuota("connection_creation_rate", 0.25))},
		{"negative rate", quotaEntry("user=alice", setQuota("consumer_byte_rate", -1))},
		{"too large a rate", quotaEntry("user=alice", setQuota("consumer_byte_rate", math.Inf(1)))},
	} {
		alter(wrong.name, "PLAINTEXT", false, wrong.entry)
	}
	describeQuotasCases(r)
	alter("removed", "PLAINTEXT", false, quotaEntry("user=alice,client-id=app", dropQuota("controller_mutation_rate")), quotaEntry("ip=", dropQuota("connection_creation_rate")),
		quotaEntry("user=never", dropQuota("producer_byte_rate")))
	r.at("48_describe_client_quotas", "after removing", "PLAINTEXT", 0, 1, func(int16) kmsg.Request { return kmsg.NewPtrDescribeClientQuotasRequest() })
	r.liftLimitOfThisAddress()
}

// liftLimitOfThisAddress takes back that no more than seven connections a second may come from here, and waits until both brokers know: what follows comes faster on a fast machine.
func (r *recorder) liftLimitOfThisAddress() {
	lift := kmsg.NewPtrAlterClientQuotasRequest()
	lift.Entries = append(lift.Entries, quotaEntry("ip=127.0.0.1", dropQuota("connection_creation_rate")))
	require.Zero(r.t, r.ask("PLAINTEXT", lift).(*kmsg.AlterClientQuotasResponse).Entries[0].ErrorCode)
	for _, door := range []string{"PLAINTEXT", "B2"} {
		require.Eventually(r.t, func() bool {
			for range 100 { // more than a limit of seven lets in at once, within its eleven seconds
				if r.raw(door, frame(kmsg.NewPtrApiVersionsRequest())) == nil {
					return false
				}
			}
			return true
		}, time.Minute, 100*time.Millisecond)
	}
}

func describeQuotasCases(r *recorder) {
	component := func(kind string, match admin.MatchType, name string) kmsg.DescribeClientQuotasRequestComponent {
		c := kmsg.DescribeClientQuotasRequestComponent{EntityType: kind, MatchType: kmsg.QuotasMatchType(match)}
		if match == admin.MatchExact {
			c.Match = &name
		}
		return c
	}
	describe := func(name, door string, strict bool, components ...kmsg.DescribeClientQuotasRequestComponent) {
		r.at("48_describe_client_quotas", name, door, 0, 1, func(int16) kmsg.Request {
			req := kmsg.NewPtrDescribeClientQuotasRequest()
			req.Components, req.Strict = components, strict
			return req
		})
	}
	describe("all", "PLAINTEXT", false)
	describe("all, not at the controller", "B2", false)
	describe("all, strictly", "PLAINTEXT", true)
	describe("a user", "PLAINTEXT", false, component("user", admin.MatchExact, "alice"))
	describe("a user, strictly", "PLAINTEXT", true, component("user", admin.MatchExact, "alice"))
	describe("a user without", "PLAINTEXT", true, component("user", admin.MatchExact, "nobody"))
	describe("the default user", "PLAINTEXT", true, component("user", admin.MatchDefault, ""))
	describe("any user", "PLAINTEXT", true, component("user", admin.MatchAny, ""))
	describe("a client of a user", "PLAINTEXT", true, component("user", admin.MatchExact, "alice"), component("client-id", admin.MatchExact, "app"))
	describe("any client of any user", "PLAINTEXT", false, component("user", admin.MatchAny, ""), component("client-id", admin.MatchAny, ""))
	describe("any client", "PLAINTEXT", false, component("client-id", admin.MatchAny, ""))
	describe("an address", "PLAINTEXT", true, component("ip", admin.MatchExact, "127.0.0.1"))
	describe("any address", "PLAINTEXT", false, component("ip", admin.MatchAny, ""))
	describe("address and user", "PLAINTEXT", false, component("ip", admin.MatchAny, ""), component("user", admin.MatchAny, ""))
	describe("twice the same kind", "PLAINTEXT", false, component("user", admin.MatchAny, ""), component("user", admin.MatchExact, "alice"))
	describe("unknown kind", "PLAINTEXT", false, component("tenant", admin.MatchAny, ""))
	describe("empty kind", "PLAINTEXT", false, component("", admin.MatchAny, ""))
}

func scramCases(r *recorder) {
	type upsertion = kmsg.AlterUserSCRAMCredentialsRequestUpsertion
	type deletion = kmsg.AlterUserSCRAMCredentialsRequestDeletion
	set := func(user string, mechanism int8, iterations int32) upsertion {
		return upsertion{Name: user, Mechanism: mechanism, Iterations: iterations, Salt: []byte("salt"), SaltedPassword: []byte("salted password")}
	}
	alter := func(name, door string, upsertions []upsertion, deletions ...deletion) {
		r.at("51_alter_user_scram_credentials", name, door, 0, 0, func(int16) kmsg.Request {
			req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
			req.Upsertions, req.Deletions = upsertions, deletions
			return req
		})
	}
	describe := func(name, door string, users ...string) {
		r.at("50_describe_user_scram_credentials", name, door, 0, 0, func(int16) kmsg.Request {
			req := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
			if len(users) > 0 {
				req.Users = []kmsg.DescribeUserSCRAMCredentialsRequestUser{}
			}
			for _, user := range users {
				req.Users = append(req.Users, kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: user})
			}
			return req
		})
	}
	describe("all, none", "PLAINTEXT")
	describe("a user without", "PLAINTEXT", "nobody")
	alter("not controller", "B2", []upsertion{set("bob", 1, 4096), set("alice", 1, 4096)}, deletion{Name: "bob", Mechanism: 2})
	alter("nothing", "PLAINTEXT", nil)
	alter("two users", "PLAINTEXT", []upsertion{set("bob", 1, 4096), set("alice", 2, 8192), set("alice", 1, 4097)})
	alter("set and removed", "PLAINTEXT", []upsertion{set("bob", 2, 16384)}, deletion{Name: "bob", Mechanism: 1})
	alter("no user", "PLAINTEXT", []upsertion{set("", 1, 4096)})
	alter("too few iterations", "PLAINTEXT", []upsertion{set("carol", 1, 4095)})
	alter("too many iterations", "PLAINTEXT", []upsertion{set("carol", 1, 16385)})
	alter("unknown mechanism", "PLAINTEXT", []upsertion{set("carol", 3, 4096)})
	alter("unknown mechanism removed", "PLAINTEXT", nil, deletion{Name: "carol", Mechanism: 0})
	alter("altered twice", "PLAINTEXT", []upsertion{set("alice", 1, 4096), set("alice", 1, 5000)})
	alter("set and removed at once", "PLAINTEXT", []upsertion{set("alice", 1, 4096)}, deletion{Name: "alice", Mechanism: 1})
	alter("removed but not there", "PLAINTEXT", nil, deletion{Name: "bob", Mechanism: 1})
	alter("one good, one bad", "PLAINTEXT", []upsertion{set("dave", 1, 4096), set("erin", 1, 1)})
	describe("all", "PLAINTEXT")
	describe("all, not at the controller", "B2")
	describe("some", "PLAINTEXT", "bob", "nobody", "alice")
	describe("twice the same", "PLAINTEXT", "bob", "alice", "bob")
	describe("empty name", "PLAINTEXT", "", "alice")
}

// sortQuotas puts entities and their parts into one order: Kafka's have none.
func sortQuotas(r *kmsg.DescribeClientQuotasResponse) {
	for i := range r.Entries {
		sortBy(r.Entries[i].Entity, func(e kmsg.DescribeClientQuotasResponseEntryEntity) string { return e.Type })
		sortBy(r.Entries[i].Values, func(v kmsg.DescribeClientQuotasResponseEntryValue) string { return v.Key })
	}
	name := func(e kmsg.DescribeClientQuotasResponseEntry) (text string) {
		for _, part := range e.Entity {
			text += part.Type + "=" + stringOrEmpty(part.Name) + ","
		}
		return text
	}
	slices.SortFunc(r.Entries, func(a, b kmsg.DescribeClientQuotasResponseEntry) int { return cmp.Compare(name(a), name(b)) })
}

func sortAlteredQuotas(r *kmsg.AlterClientQuotasResponse) {
	for i := range r.Entries {
		sortBy(r.Entries[i].Entity, func(e kmsg.AlterClientQuotasResponseEntryEntity) string { return e.Type })
	}
	name := func(e kmsg.AlterClientQuotasResponseEntry) (text string) {
		for _, part := range e.Entity {
			text += part.Type + "=" + stringOrEmpty(part.Name) + ","
		}
		return text
	}
	slices.SortFunc(r.Entries, func(a, b kmsg.AlterClientQuotasResponseEntry) int { return cmp.Compare(name(a), name(b)) })
}

// playQuotas and playScram answer as Kafka did, in the administration's types.
func (a *playedAdmin) playQuotas(want kmsg.Response) {
	switch r := want.(type) {
	case *kmsg.DescribeClientQuotasResponse:
		a.describeQuotas = func() (found []admin.QuotaDescription, err error) {
			for _, e := range r.Entries {
				q := admin.QuotaDescription{}
				for _, part := range e.Entity {
					q.Entity = append(q.Entity, admin.EntityPart{Type: part.Type, Name: part.Name})
				}
				for _, v := range e.Values {
					q.Values = append(q.Values, admin.QuotaValue{Key: v.Key, Value: v.Value})
				}
				found = append(found, q)
			}
			return found, asError(r.ErrorCode, r.ErrorMessage)
		}
	case *kmsg.AlterClientQuotasResponse:
		sortAlteredQuotas(r)
		a.alterQuotas = func(specs []admin.QuotaSpec) (results []admin.QuotaResult) {
			for i, e := range r.Entries {
				results = append(results, admin.QuotaResult{Entity: specs[i].Entity, Err: asError(e.ErrorCode, e.ErrorMessage)})
			}
			return results
		}
	}
}

func (a *playedAdmin) playScram(want kmsg.Response) {
	switch r := want.(type) {
	case *kmsg.DescribeUserSCRAMCredentialsResponse:
		a.describeScram = func() (found []admin.ScramDescription, err error) {
			for _, e := range r.Results {
				d := admin.ScramDescription{User: e.User, Err: asError(e.ErrorCode, e.ErrorMessage)}
				for _, info := range e.CredentialInfos {
					d.Credentials = append(d.Credentials, admin.ScramInfo{Mechanism: admin.ScramMechanism(info.Mechanism), Iterations: info.Iterations})
				}
				found = append(found, d)
			}
			return found, asError(r.ErrorCode, r.ErrorMessage)
		}
	case *kmsg.AlterUserSCRAMCredentialsResponse:
		a.alterScram = func() (results []admin.ScramResult) {
			for _, e := range r.Results {
				results = append(results, admin.ScramResult{User: e.User, Err: asError(e.ErrorCode, e.ErrorMessage)})
			}
			return results
		}
	}
}
