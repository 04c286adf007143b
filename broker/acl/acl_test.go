package acl

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	topic    = kmsg.ACLResourceTypeTopic
	literal  = kmsg.ACLResourcePatternTypeLiteral
	prefixed = kmsg.ACLResourcePatternTypePrefixed
	allow    = kmsg.ACLPermissionTypeAllow
	deny     = kmsg.ACLPermissionTypeDeny
)

func alice() Subject { return Subject{Principal{"User", "alice"}, "10.0.0.1"} }

// tableOf reads bindings of topics, each as "Allow User:alice 10.0.0.1 READ literal one".
func tableOf(t *testing.T, lines ...string) *Table {
	changes := map[Pattern][]Entry{}
	for _, line := range lines {
		f := strings.Fields(line)
		require.Len(t, f, 6, line)
		permission, err := kmsg.ParseACLPermissionType(f[0])
		require.NoError(t, err)
		op, err := kmsg.ParseACLOperation(f[3])
		require.NoError(t, err)
		kind, err := kmsg.ParseACLResourcePatternType(f[4])
		require.NoError(t, err)
		p := Pattern{topic, f[5], kind}
		changes[p] = append(changes[p], Entry{f[1], f[2], op, permission})
	}
	table, err := (*Table)(nil).With(changes)
	require.NoError(t, err)
	return table
}

func TestDecisions(t *testing.T) {
	for _, c := range []struct {
		name    string
		lists   []string
		op      kmsg.ACLOperation
		allowed bool
	}{
		{"nothing is listed", nil, kmsg.ACLOperationRead, false},
		{"by name", []string{"Allow User:alice * READ literal orders"}, kmsg.ACLOperationRead, true},
		{"by prefix", []string{"Allow User:alice * READ prefixed ord"}, kmsg.ACLOperationRead, true},
		{"by a prefix that is the name", []string{"Allow User:alice * READ prefixed orders"}, kmsg.ACLOperationRead, true},
		{"a longer prefix", []string{"Allow User:alice * READ prefixed orders2"}, kmsg.ACLOperationRead, false},
		{"an empty prefix concerns nothing", []string{"Allow User:alice * READ prefixed " + "o", "Deny User:alice * READ literal other"}, kmsg.ACLOperationRead, true},
		{"by the wildcard", []string{"Allow User:alice * READ literal *"}, kmsg.ACLOperationRead, true},
		{"a prefix that is a star is no wildcard", []string{"Allow User:alice * READ prefixed *"}, kmsg.ACLOperationRead, false},
		{"everybody", []string{"Allow User:* * READ literal orders"}, kmsg.ACLOperationRead, true},
		{"everybody of another type", []string{"Allow Group:* * READ literal orders"}, kmsg.ACLOperationRead, false},
		{"somebody else", []string{"Allow User:bob * READ literal orders"}, kmsg.ACLOperationRead, false},
		{"a host", []string{"Allow User:alice 10.0.0.1 READ literal orders"}, kmsg.ACLOperationRead, true},
		{"another host", []string{"Allow User:alice 10.0.0.2 READ literal orders"}, kmsg.ACLOperationRead, false},
		{"another operation", []string{"Allow User:alice * WRITE literal orders"}, kmsg.ACLOperationRead, false},
		{"all operations", []string{"Allow User:alice * ALL literal orders"}, kmsg.ACLOperationRead, true},
		{"denied by name, allowed by prefix", []string{"Allow User:alice * READ prefixed ord", "Deny User:alice * READ literal orders"}, kmsg.ACLOperationRead, false},
		{"denied by prefix, allowed by name", []string{"Deny User:* * READ prefixed o", "Allow User:alice * READ literal orders"}, kmsg.ACLOperationRead, false},
		{"denied by the wildcard", []string{"Deny User:alice * ALL literal *", "Allow User:alice * READ literal orders"}, kmsg.ACLOperationRead, false},
		{"denied to another host", []string{"Deny User:alice 10.0.0.2 ALL literal *", "Allow User:alice * READ literal orders"}, kmsg.ACLOperationRead, true},
		{"reading is describing", []string{"Allow User:alice * READ literal orders"}, kmsg.ACLOperationDescribe, true},
		{"deleting is describing", []string{"Allow User:alice * DELETE literal orders"}, kmsg.ACLOperationDescribe, true},
		{"altering is describing", []string{"Allow User:alice * ALTER literal orders"}, kmsg.ACLOperationDescribe, true},
		{"creating is not describing", []string{"Allow User:alice * CREATE literal orders"}, kmsg.ACLOperationDescribe, false},
		{"altering settings is describing settings", []string{"Allow User:alice * ALTER_CONFIGS literal orders"}, kmsg.ACLOperationDescribeConfigs, true},
		{"altering settings is not describing", []string{"Allow User:alice * ALTER_CONFIGS literal orders"}, kmsg.ACLOperationDescribe, false},
		{"denied reading denies no describing", []string{"Deny User:alice * READ literal orders", "Allow User:alice * WRITE literal orders"}, kmsg.ACLOperationDescribe, true},
		{"denied describing denies no reading", []string{"Deny User:alice * DESCRIBE literal orders", "Allow User:alice * READ literal orders"}, kmsg.ACLOperationRead, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := tableOf(t, c.lists...)
			assert.Equal(t, c.allowed, Policy{}.Allows(table, alice(), c.op, topic, "orders"))
			assert.False(t, Policy{}.Allows(table, alice(), c.op, kmsg.ACLResourceTypeGroup, "orders"), "another type of resource")
			super := Policy{SuperUsers: map[Principal]bool{{"User", "alice"}: true}}
			assert.True(t, super.Allows(table, alice(), c.op, topic, "orders"))
		})
	}
}

func TestWhatNoListConcernsMayBeOpen(t *testing.T) {
	open := Policy{AllowUnlisted: true}
	assert.True(t, open.Allows(nil, alice(), kmsg.ACLOperationRead, topic, "orders"))
	assert.True(t, open.Allows(tableOf(t, "Allow User:bob * READ literal other"), alice(), kmsg.ACLOperationRead, topic, "orders"))
	assert.False(t, open.Allows(tableOf(t, "Allow User:bob * READ prefixed o"), alice(), kmsg.ACLOperationRead, topic, "orders"))
}

func TestATableThatChangedLeavesTheOneBeforeAsItWas(t *testing.T) {
	before := tableOf(t, "Allow User:alice * READ literal orders")
	after, err := before.With(map[Pattern][]Entry{{topic, "orders", literal}: nil, {topic, "ord", prefixed}: {{"User:alice", "*", kmsg.ACLOperationWrite, allow}}})
	require.NoError(t, err)
	assert.True(t, Policy{}.Allows(before, alice(), kmsg.ACLOperationRead, topic, "orders"))
	assert.False(t, Policy{}.Allows(before, alice(), kmsg.ACLOperationWrite, topic, "orders"))
	assert.False(t, Policy{}.Allows(after, alice(), kmsg.ACLOperationRead, topic, "orders"))
	assert.True(t, Policy{}.Allows(after, alice(), kmsg.ACLOperationWrite, topic, "orders"))
	assert.Equal(t, []Pattern{{topic, "ord", prefixed}}, after.Patterns())

	_, err = before.With(map[Pattern][]Entry{{topic, "t", literal}: {{"alice", "*", kmsg.ACLOperationRead, allow}}})
	assert.EqualError(t, err, "expected a string in format principalType:principalName but got alice")
}

// plainly decides by looking at every binding, in the words of KIP-11 and KIP-290.
func plainly(bindings []Binding, who Subject, op kmsg.ACLOperation, resource kmsg.ACLResourceType, name string) bool {
	allowed := false
	for _, b := range bindings {
		concerned := b.Resource == resource && (b.Pattern.Type == literal && (b.Name == name || b.Name == "*") || b.Pattern.Type == prefixed && b.Name != "" && strings.HasPrefix(name, b.Name))
		if !concerned || b.Entry.Principal != who.Principal.String() && b.Entry.Principal != "User:*" || b.Host != who.Host && b.Host != "*" {
			continue
		}
		named := b.Operation == op || b.Operation == kmsg.ACLOperationAll
		if b.Permission == deny && named {
			return false
		}
		implied := op == kmsg.ACLOperationDescribe && (b.Operation == kmsg.ACLOperationRead || b.Operation == kmsg.ACLOperationWrite || b.Operation == kmsg.ACLOperationDelete || b.Operation == kmsg.ACLOperationAlter) ||
			op == kmsg.ACLOperationDescribeConfigs && b.Operation == kmsg.ACLOperationAlterConfigs
		allowed = allowed || b.Permission == allow && (named || implied)
	}
	return allowed
}

// some makes random bindings of few names, so that they meet.
type some struct{ *rand.Rand }

func oneOf[T any](s some, of ...T) T { return of[s.IntN(len(of))] }

func (s some) name() string {
	return oneOf(s, "*", "a", "ab", "abc", "abd", "b", "ba", "äö", "ä")
}

func (s some) op() kmsg.ACLOperation { return kmsg.ACLOperation(2 + s.IntN(13)) }

func (s some) binding() Binding {
	return Binding{
		Pattern{oneOf(s, topic, kmsg.ACLResourceTypeGroup), s.name(), oneOf(s, literal, prefixed)},
		Entry{oneOf(s, "User:alice", "User:bob", "User:*", "Group:alice"), oneOf(s, "*", "10.0.0.1", "10.0.0.2"), s.op(), oneOf(s, allow, allow, deny)},
	}
}

func TestTheIndexDecidesAsLookingAtEverythingDoes(t *testing.T) {
	for seed := range uint64(300) {
		s := some{rand.New(rand.NewPCG(seed, 1))}
		var table *Table
		for range s.IntN(30) {
			b := s.binding()
			entries := table.Entries(b.Pattern)
			if s.IntN(4) == 0 && len(entries) > 0 {
				entries = entries[1:]
			} else {
				entries = append(entries, b.Entry)
			}
			var err error
			table, err = table.With(map[Pattern][]Entry{b.Pattern: entries})
			require.NoError(t, err)
		}
		all := table.Bindings(everything)
		for range 50 {
			who := Subject{Principal{oneOf(s, "User", "Group"), oneOf(s, "alice", "bob", "carol")}, oneOf(s, "10.0.0.1", "10.0.0.3")}
			op, resource, name := s.op(), oneOf(s, topic, kmsg.ACLResourceTypeGroup), s.name()
			require.Equal(t, plainly(all, who, op, resource, name), Policy{}.Allows(table, who, op, resource, name), "seed %d: %v %v %v %q by %v", seed, who, op, resource, name, all)
			if d := (Policy{}).Decide(table, who, op, resource, name); d.Reason == ByEntry {
				require.Contains(t, all, d.By)
				require.Equal(t, d.Allowed, d.By.Permission == allow, "seed %d: %+v", seed, d)
			} else {
				require.False(t, d.Allowed, "seed %d: %+v", seed, d)
			}
			require.Equal(t, somewhere(all, who, op, resource), Policy{}.AllowsAny(table, who, op, resource), "seed %d: %v %v %v by %v", seed, who, op, resource, all)
		}
	}
}

// somewhere tries the names that could be allowed: those of every pattern that allows, and one below each prefix that nothing else names.
func somewhere(bindings []Binding, who Subject, op kmsg.ACLOperation, resource kmsg.ACLResourceType) bool {
	var named []Binding // what implies another operation does not count
	for _, b := range bindings {
		if b.Operation == op || b.Operation == kmsg.ACLOperationAll {
			named = append(named, b)
		}
	}
	for _, b := range named {
		name := b.Name
		if b.Pattern.Type == prefixed || name == "*" {
			name = strings.TrimSuffix(name, "*") + "\x00nowhere else"
			if b.Pattern.Type == prefixed {
				name = b.Name + "\x00nowhere else"
			}
		}
		if b.Resource == resource && plainly(named, who, op, resource, name) {
			return true
		}
	}
	return false
}

var everything = Filter{Resource: kmsg.ACLResourceTypeAny, Type: kmsg.ACLResourcePatternTypeAny, Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny}

func TestFilters(t *testing.T) {
	table := tableOf(t, "Allow User:alice * READ literal orders", "Deny User:bob h WRITE literal orders", "Allow User:alice * READ prefixed ord", "Allow User:alice * READ literal *")
	names := func(f Filter) (found []string) {
		for _, b := range table.Bindings(f) {
			found = append(found, fmt.Sprint(b.Pattern.Type, " ", b.Name, " ", b.Entry.Principal))
		}
		return found
	}
	with := func(change func(*Filter)) Filter {
		f := everything
		f.Resource, f.Name = topic, kmsg.StringPtr("orders")
		change(&f)
		return f
	}
	assert.Len(t, names(everything), 4)
	assert.Equal(t, []string{"LITERAL orders User:alice", "LITERAL orders User:bob"}, names(with(func(f *Filter) { f.Type = literal })))
	assert.Equal(t, []string{"LITERAL orders User:alice", "LITERAL orders User:bob"}, names(with(func(*Filter) {})), "any type, of exactly that name")
	assert.Equal(t, []string{"LITERAL * User:alice", "LITERAL orders User:alice", "LITERAL orders User:bob", "PREFIXED ord User:alice"}, names(with(func(f *Filter) { f.Type = kmsg.ACLResourcePatternTypeMatch })))
	assert.Empty(t, names(with(func(f *Filter) { f.Type = prefixed })))
	assert.Equal(t, []string{"LITERAL orders User:bob"}, names(with(func(f *Filter) { f.Permission = deny })))
	assert.Equal(t, []string{"LITERAL orders User:bob"}, names(with(func(f *Filter) { f.Host = kmsg.StringPtr("h") })))
	assert.Empty(t, names(with(func(f *Filter) { f.Resource = kmsg.ACLResourceTypeGroup })))

	assert.Equal(t, []Pattern{{topic, "orders", literal}, {topic, "orders", prefixed}}, with(func(*Filter) {}).Patterns())
	assert.Nil(t, with(func(f *Filter) { f.Type = kmsg.ACLResourcePatternTypeMatch }).Patterns())
	assert.Nil(t, everything.Patterns())
}

func TestADecisionNamesTheEntryThatMadeIt(t *testing.T) {
	table := tableOf(t, "Allow User:alice * READ prefixed ord", "Deny User:alice 10.0.0.9 READ literal *", "Allow User:* * DESCRIBE literal orders")
	policy := Policy{SuperUsers: map[Principal]bool{{"User", "admin"}: true}}
	decide := func(who Subject, op kmsg.ACLOperation, name string) Decision {
		return policy.Decide(table, who, op, topic, name)
	}
	by := func(name string, kind kmsg.ACLResourcePatternType, e Entry) Binding {
		return Binding{Pattern{topic, name, kind}, e}
	}
	reads := by("ord", prefixed, Entry{"User:alice", "*", kmsg.ACLOperationRead, allow})
	assert.Equal(t, Decision{true, ByEntry, reads}, decide(alice(), kmsg.ACLOperationRead, "orders"))
	assert.Equal(t, Decision{true, ByEntry, reads}, decide(alice(), kmsg.ACLOperationDescribe, "ordinary"), "reading is describing")
	assert.Equal(t, Decision{true, ByEntry, by("orders", literal, Entry{"User:*", "*", kmsg.ACLOperationDescribe, allow})}, decide(alice(), kmsg.ACLOperationDescribe, "orders"), "its own list comes first")
	away := Subject{Principal{"User", "alice"}, "10.0.0.9"}
	assert.Equal(t, Decision{false, ByEntry, by("*", literal, Entry{"User:alice", "10.0.0.9", kmsg.ACLOperationRead, deny})}, decide(away, kmsg.ACLOperationRead, "orders"))
	assert.Equal(t, Decision{Reason: NoEntry}, decide(alice(), kmsg.ACLOperationWrite, "orders"))
	assert.Equal(t, Decision{Allowed: true, Reason: SuperUser}, decide(Subject{Principal{"User", "admin"}, "h"}, kmsg.ACLOperationWrite, "orders"))
	assert.Equal(t, Decision{Allowed: true, Reason: Unlisted}, Policy{AllowUnlisted: true}.Decide(nil, alice(), kmsg.ACLOperationWrite, topic, "orders"))
}

func TestSuperUsersAreSeparatedBySemicolons(t *testing.T) {
	users, err := ParseSuperUsers(" User:CN=a,OU=b ;User:carol;")
	require.NoError(t, err)
	assert.Equal(t, map[Principal]bool{{"User", "CN=a,OU=b"}: true, {"User", "carol"}: true}, users)
	_, err = ParseSuperUsers("carol")
	assert.EqualError(t, err, "expected a string in format principalType:principalName but got carol")
}

func TestDecidingAllocatesNothing(t *testing.T) {
	table := tableOf(t, "Allow User:alice * READ literal orders", "Allow User:alice * READ prefixed ord", "Deny User:bob * READ prefixed or", "Allow User:* * DESCRIBE literal *")
	policy, who := Policy{}, alice()
	assert.Zero(t, testing.AllocsPerRun(100, func() { policy.Allows(table, who, kmsg.ACLOperationRead, topic, "orders") }))
}

func BenchmarkAllowsAmongTenThousandPatterns(b *testing.B) {
	changes := map[Pattern][]Entry{}
	for i := range 5000 {
		changes[Pattern{topic, fmt.Sprintf("team-%d.topic", i), literal}] = []Entry{{"User:alice", "*", kmsg.ACLOperationRead, allow}}
		changes[Pattern{topic, fmt.Sprintf("team-%d.", i), prefixed}] = []Entry{{"User:bob", "*", kmsg.ACLOperationWrite, allow}}
	}
	table, err := (*Table)(nil).With(changes)
	if err != nil {
		b.Fatal(err)
	}
	policy, who := Policy{}, alice()
	b.ReportAllocs()
	for b.Loop() {
		if !policy.Allows(table, who, kmsg.ACLOperationRead, topic, "team-4711.topic") {
			b.Fatal("denied")
		}
	}
}
