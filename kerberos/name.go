package kerberos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Name is a principal as Kafka knows them: primary@REALM or primary/instance@REALM.
type Name struct {
	Primary, Instance, Realm string
}

// ParseName reads a principal; realm is that of one that names none.
func ParseName(text, realm string) (Name, error) {
	name, own, named := strings.Cut(text, "@")
	if named {
		realm = own
	}
	return newName(strings.Split(name, "/"), realm, text)
}

// nameOf is a principal of Kerberos' messages as a Name.
func nameOf(p types.PrincipalName, realm string) (Name, error) {
	return newName(p.NameString, realm, p.PrincipalNameString()+"@"+realm)
}

// newName makes a name of its parts. Parts that hold what separates parts would be taken for other names.
func newName(components []string, realm, text string) (Name, error) {
	odd := func(part string) bool { return strings.ContainsAny(part, "/@") }
	if len(components) < 1 || len(components) > 2 || slices.Contains(components, "") || slices.ContainsFunc(components, odd) || realm == "" || odd(realm) {
		return Name{}, fmt.Errorf("malformed Kerberos principal %q", text)
	}
	n := Name{Primary: components[0], Realm: realm}
	if len(components) == 2 {
		n.Instance = components[1]
	}
	return n, nil
}

func (n Name) String() string { return n.local() + "@" + n.Realm }

// local is the name without its realm.
func (n Name) local() string {
	if n.Instance == "" {
		return n.Primary
	}
	return n.Primary + "/" + n.Instance
}

func (n Name) principal() types.PrincipalName {
	return types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, n.local())
}
