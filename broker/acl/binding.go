package acl

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// Wildcard as the name of a literal pattern means every resource of the type; as a host every host.
	Wildcard = "*"
	// ClusterName is the name of the one resource of type CLUSTER.
	ClusterName = "kafka-cluster"
)

// Pattern names resources: one by its name, all that begin with it (PREFIXED), or all (Wildcard).
type Pattern struct {
	Resource kmsg.ACLResourceType
	Name     string
	Type     kmsg.ACLResourcePatternType // LITERAL or PREFIXED
}

// Compare orders patterns by resource, type and name.
func (p Pattern) Compare(o Pattern) int {
	return cmp.Or(cmp.Compare(p.Resource, o.Resource), cmp.Compare(p.Type, o.Type), cmp.Compare(p.Name, o.Name))
}

// Entry is one permission: whom it concerns (Type:Name), from where, and what it allows or denies.
type Entry struct {
	Principal, Host string
	Operation       kmsg.ACLOperation
	Permission      kmsg.ACLPermissionType // ALLOW or DENY
}

// Binding is an entry of a pattern.
type Binding struct {
	Pattern
	Entry
}

// Compare orders entries by pattern, principal, permission, host and operation.
func (b Binding) Compare(o Binding) int {
	return cmp.Or(b.Pattern.Compare(o.Pattern), cmp.Compare(b.Principal, o.Principal), cmp.Compare(b.Permission, o.Permission), cmp.Compare(b.Host, o.Host), cmp.Compare(b.Operation, o.Operation))
}

// Principal is whom something is done for; the fields are those of a connection's principal.
type Principal struct{ Type, Name string }

// everybody is the principal that stands for all users.
var everybody = Principal{Type: "User", Name: "*"}

// ParsePrincipal reads Type:Name; the name may hold colons.
func ParsePrincipal(s string) (Principal, error) {
	kind, name, ok := strings.Cut(s, ":")
	if !ok {
		return Principal{}, fmt.Errorf("expected a string in format principalType:principalName but got %s", s)
	}
	return Principal{Type: kind, Name: name}, nil
}

// String is Type:Name.
func (p Principal) String() string { return p.Type + ":" + p.Name }

// Word is a name of the protocol as it stands in nodes and on command lines: AlterConfigs for ALTER_CONFIGS.
func Word(code string) string {
	var b strings.Builder
	for _, part := range strings.Split(code, "_") {
		if part != "" {
			b.WriteString(part[:1] + strings.ToLower(part[1:]))
		}
	}
	return b.String()
}
