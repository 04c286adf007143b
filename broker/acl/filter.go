package acl

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Filter chooses bindings, as DescribeAcls and DeleteAcls name them. A nil name, principal or host matches any, as ANY
// does in the other fields. The pattern type MATCH chooses the patterns that concern the resource of that name.
type Filter struct {
	Resource        kmsg.ACLResourceType
	Name            *string
	Type            kmsg.ACLResourcePatternType
	Principal, Host *string
	Operation       kmsg.ACLOperation
	Permission      kmsg.ACLPermissionType
}

// Matches tells whether a binding is chosen.
func (f Filter) Matches(b Binding) bool {
	return f.MatchesPattern(b.Pattern) && f.MatchesEntry(b.Entry)
}

// MatchesPattern tells whether bindings of a pattern can be chosen.
func (f Filter) MatchesPattern(p Pattern) bool {
	if f.Resource != kmsg.ACLResourceTypeAny && f.Resource != p.Resource {
		return false
	}
	anyType := f.Type == kmsg.ACLResourcePatternTypeAny
	if !anyType && f.Type != kmsg.ACLResourcePatternTypeMatch && f.Type != p.Type {
		return false
	}
	switch {
	case f.Name == nil:
		return true
	case anyType || f.Type == p.Type:
		return *f.Name == p.Name
	case p.Type == kmsg.ACLResourcePatternTypePrefixed:
		return strings.HasPrefix(*f.Name, p.Name)
	default:
		return *f.Name == p.Name || p.Name == Wildcard
	}
}

// MatchesEntry tells whether an entry is chosen of those of a pattern that is.
func (f Filter) MatchesEntry(e Entry) bool {
	return (f.Principal == nil || *f.Principal == e.Principal) && (f.Host == nil || *f.Host == e.Host) &&
		(f.Operation == kmsg.ACLOperationAny || f.Operation == e.Operation) &&
		(f.Permission == kmsg.ACLPermissionTypeAny || f.Permission == e.Permission)
}

// Patterns are the patterns that the filter names by themselves, whether or not they exist: at most one of each type.
func (f Filter) Patterns() []Pattern {
	if f.Name == nil || f.Resource == kmsg.ACLResourceTypeAny || f.Resource.String() == "UNKNOWN" {
		return nil
	}
	literal := Pattern{f.Resource, *f.Name, kmsg.ACLResourcePatternTypeLiteral}
	prefixed := Pattern{f.Resource, *f.Name, kmsg.ACLResourcePatternTypePrefixed}
	switch f.Type {
	case kmsg.ACLResourcePatternTypeLiteral:
		return []Pattern{literal}
	case kmsg.ACLResourcePatternTypePrefixed:
		return []Pattern{prefixed}
	case kmsg.ACLResourcePatternTypeAny:
		return []Pattern{literal, prefixed}
	}
	return nil
}
