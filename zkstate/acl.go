package zkstate

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Kafka's access lists: one node per resource pattern with its entries, and numbered notifications of changes.

// ResourceType is the type of a resource, as the directories spell it.
type ResourceType string

// The types of resources; User came with Kafka 3.3.
const (
	TopicResource           ResourceType = "Topic"
	GroupResource           ResourceType = "Group"
	ClusterResource         ResourceType = "Cluster"
	TransactionalIDResource ResourceType = "TransactionalId"
	DelegationTokenResource ResourceType = "DelegationToken"
	UserResource            ResourceType = "User"
)

// ResourceTypes are all of them.
var ResourceTypes = []ResourceType{TopicResource, GroupResource, ClusterResource, TransactionalIDResource, DelegationTokenResource, UserResource}

var resourceCodes = map[ResourceType]string{TopicResource: "TOPIC", GroupResource: "GROUP", ClusterResource: "CLUSTER",
	TransactionalIDResource: "TRANSACTIONAL_ID", DelegationTokenResource: "DELEGATION_TOKEN", UserResource: "USER"}

func resourceOfCode(code string) (ResourceType, error) {
	for t, c := range resourceCodes {
		if strings.EqualFold(c, code) || strings.EqualFold(string(t), code) {
			return t, nil
		}
	}
	return "", fmt.Errorf("%q is no type of resource", code)
}

// Resource is a resource pattern.
type Resource struct {
	Type     ResourceType
	Name     string
	Prefixed bool // the name is a prefix (KIP-290) instead of the whole name
}

// Paths of access lists.
const (
	ACLPath                = "/kafka-acl"
	ExtendedACLPath        = "/kafka-acl-extended"
	PrefixedACLPath        = "/kafka-acl-extended/prefixed"
	ACLChangesPath         = "/kafka-acl-changes"
	ExtendedACLChangesPath = "/kafka-acl-extended-changes"
	aclChangePrefix        = "acl_changes_"
)

// ResourceTypePath is the directory of the resources of a type.
func ResourceTypePath(t ResourceType, prefixed bool) string {
	if prefixed {
		return PrefixedACLPath + "/" + string(t)
	}
	return ACLPath + "/" + string(t)
}

// Path is the node of the pattern's entries.
func (r Resource) Path() string { return ResourceTypePath(r.Type, r.Prefixed) + "/" + r.Name }

// ACLEntry is one permission: Principal is Type:name, Permission Allow or Deny, Operation as in Kafka's tools (Read).
type ACLEntry struct {
	Principal, Permission, Operation, Host string
}

// ACLDialect is which Kafka's order of keys to write.
type ACLDialect int8

// The orders of keys.
const (
	ACLSince3 ACLDialect = iota // 3.x
	ACLBefore3
)

// EncodeACL writes the data of Resource.Path.
func EncodeACL(entries []ACLEntry, dialect ACLDialect) []byte {
	var w jsonWriter
	version := func() {
		w.key("version")
		w.int(1)
	}
	pair := func(k, v string) {
		w.key(k)
		w.str(v)
	}
	w.open('{')
	if dialect == ACLBefore3 {
		version()
	}
	w.key("acls")
	w.open('[')
	for _, e := range entries {
		w.open('{')
		pair("principal", e.Principal)
		pair("permissionType", e.Permission)
		if dialect == ACLBefore3 {
			pair("operation", e.Operation)
			pair("host", e.Host)
		} else {
			pair("host", e.Host)
			pair("operation", e.Operation)
		}
		w.close('}')
	}
	w.close(']')
	if dialect != ACLBefore3 {
		version()
	}
	w.close('}')
	return w.buf
}

// DecodeACL reads the data of Resource.Path, in the order of the node.
func DecodeACL(data []byte) ([]ACLEntry, error) {
	if len(data) == 0 {
		return nil, nil
	}
	o := parseObject("access list", data)
	if version := o.int32("version"); o.err == nil && version != 1 {
		o.fail("version", errVersion)
	}
	var out []ACLEntry
	for _, raw := range o.array("acls") {
		e := parseObject("access list", raw)
		out = append(out, ACLEntry{Principal: e.str("principal"), Permission: e.str("permissionType"), Operation: e.str("operation"), Host: e.str("host")})
		if e.err != nil {
			o.fail("acls", e.err)
			return nil, o.wrapped()
		}
	}
	return out, o.wrapped()
}

// ChangePath and EncodeChange are the notification that a pattern's entries have changed.
func (r Resource) ChangePath() string {
	if r.Prefixed {
		return ExtendedACLChangesPath + "/" + aclChangePrefix
	}
	return ACLChangesPath + "/" + aclChangePrefix
}

// EncodeChange writes the data of the notification: text for a literal pattern, JSON for a prefixed one.
func (r Resource) EncodeChange() []byte {
	if !r.Prefixed {
		return []byte(resourceCodes[r.Type] + ":" + r.Name)
	}
	var w jsonWriter
	w.open('{')
	w.key("version")
	w.int(1)
	w.key("resourceType")
	w.str(resourceCodes[r.Type])
	w.key("name")
	w.str(r.Name)
	w.key("patternType")
	w.str("PREFIXED")
	w.close('}')
	return w.buf
}

// DecodeACLChange reads a notification below ACLChangesPath.
func DecodeACLChange(data []byte) (Resource, error) {
	code, name, ok := strings.Cut(string(data), ":")
	if !ok {
		return Resource{}, &MalformedError{What: "access list change", Err: errors.New("no resource")}
	}
	t, err := resourceOfCode(code)
	if err != nil {
		return Resource{}, &MalformedError{What: "access list change", Err: err}
	}
	return Resource{Type: t, Name: name}, nil
}

// DecodeExtendedACLChange reads a notification below ExtendedACLChangesPath.
func DecodeExtendedACLChange(data []byte) (Resource, error) {
	o := parseObject("access list change", data)
	r := Resource{Name: o.str("name"), Prefixed: true}
	code, pattern := o.str("resourceType"), o.str("patternType")
	if o.err == nil && !strings.EqualFold(pattern, "PREFIXED") {
		o.fail("patternType", fmt.Errorf("%q is not known", pattern))
	}
	if o.err == nil {
		t, err := resourceOfCode(code)
		if err != nil {
			o.fail("resourceType", err)
		}
		r.Type = t
	}
	return r, o.wrapped()
}

// MakeACLPaths makes the directories that an authorizer expects.
func (c *Client) MakeACLPaths(ctx context.Context) error {
	var paths []string
	for _, prefixed := range []bool{false, true} {
		for _, t := range ResourceTypes {
			paths = append(paths, ResourceTypePath(t, prefixed))
		}
	}
	return c.makePaths(ctx, append(paths, ACLChangesPath, ExtendedACLChangesPath)...)
}

// NotifyACLChange tells the brokers that a pattern's entries have changed.
func (c *Client) NotifyACLChange(ctx context.Context, r Resource) error {
	return c.notify(ctx, r.ChangePath(), r.EncodeChange())
}

// VersionedACL is what stands at a Resource.Path; Version is -1 where there is no node.
type VersionedACL struct {
	Entries []ACLEntry
	Version int32
}

// NoACLVersion is the version of an access list that is not there.
const NoACLVersion int32 = -1

// ACL reads a pattern's entries.
func (c *Client) ACL(ctx context.Context, r Resource) (VersionedACL, error) {
	got, err := c.One(ctx, Get(r.Path()))
	if errors.Is(err, ErrNoNode) {
		return VersionedACL{Version: NoACLVersion}, nil
	}
	if err != nil {
		return VersionedACL{}, fmt.Errorf("reading %s: %w", r.Path(), err)
	}
	return decodeVersionedACL(r, got)
}

func decodeVersionedACL(r Resource, got Result) (VersionedACL, error) {
	entries, err := DecodeACL(got.Data)
	if err != nil {
		return VersionedACL{}, fmt.Errorf("reading %s: %w", r.Path(), err)
	}
	return VersionedACL{Entries: entries, Version: got.Stat.Version}, nil
}

// ACLs reads the entries of every pattern. Types of resources that are not known are passed over.
func (c *Client) ACLs(ctx context.Context) (map[Resource]VersionedACL, error) {
	var resources []Resource
	for _, prefixed := range []bool{false, true} {
		for _, t := range ResourceTypes {
			listed, err := c.One(ctx, Children(ResourceTypePath(t, prefixed)))
			if errors.Is(err, ErrNoNode) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", ResourceTypePath(t, prefixed), err)
			}
			for _, name := range listed.Children {
				resources = append(resources, Resource{Type: t, Name: name, Prefixed: prefixed})
			}
		}
	}
	reads := make([]Op, len(resources))
	for i, r := range resources {
		reads[i] = Get(r.Path())
	}
	results, err := c.Do(ctx, reads)
	if err != nil {
		return nil, fmt.Errorf("reading access lists: %w", err)
	}
	all := make(map[Resource]VersionedACL, len(resources))
	for i, got := range results {
		if errors.Is(got.Err, ErrNoNode) {
			continue // deleted since it was listed
		}
		if got.Err != nil {
			return nil, fmt.Errorf("reading %s: %w", resources[i].Path(), got.Err)
		}
		if all[resources[i]], err = decodeVersionedACL(resources[i], got); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// PutACL replaces a pattern's entries if they still have the version given; NoACLVersion makes the node, and no entries
// remove it. It returns the new version. Another's change answers ErrBadVersion, ErrNodeExists or ErrNoNode.
func (c *Client) PutACL(ctx context.Context, r Resource, acl VersionedACL) (int32, error) {
	switch {
	case len(acl.Entries) == 0 && acl.Version == NoACLVersion:
		return NoACLVersion, nil
	case len(acl.Entries) == 0:
		_, err := c.One(ctx, Delete(r.Path(), acl.Version))
		if errors.Is(err, ErrNoNode) {
			err = nil
		}
		return NoACLVersion, err
	case acl.Version == NoACLVersion:
		return 0, c.createBelow(ctx, r.Path(), EncodeACL(acl.Entries, ACLSince3))
	default:
		set, err := c.One(ctx, Set(r.Path(), EncodeACL(acl.Entries, ACLSince3), acl.Version))
		return set.Stat.Version, err
	}
}
