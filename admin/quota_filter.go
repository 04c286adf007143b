package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/zkstate"
)

// MatchType says how a component of a quota filter matches, as the protocol numbers it.
type MatchType int8

// The ways to match.
const (
	MatchExact MatchType = iota
	MatchDefault
	MatchAny // any name that was given, default included
)

// QuotaFilter is one component of DescribeClientQuotas.
type QuotaFilter struct {
	Type  string
	Match MatchType
	Name  *string // of MatchExact
}

// QuotaDescription is one entity with its limits, sorted by key.
type QuotaDescription struct {
	Entity QuotaEntity
	Values []QuotaValue
}

// DescribeClientQuotas lists quotas whose entities match all components; strict leaves out entities that have parts
// of types that the filter does not name.
func (a *Admin) DescribeClientQuotas(ctx context.Context, filters []QuotaFilter, strict bool) ([]QuotaDescription, error) {
	byType := map[string]*QuotaFilter{}
	for i, f := range filters {
		switch f.Type {
		case UserPart, ClientIDPart, IPPart:
		case "":
			return nil, failed(kerr.InvalidRequest, "Unexpected empty filter component entity type")
		default:
			return nil, failed(kerr.UnsupportedVersion, "Custom entity type '%s' not supported", f.Type)
		}
		if byType[f.Type] != nil {
			name := map[string]string{UserPart: "user", ClientIDPart: "client", IPPart: "ip"}[f.Type]
			return nil, failed(kerr.InvalidRequest, "Duplicate %s filter component entity type", name)
		}
		byType[f.Type] = &filters[i]
	}
	if byType[IPPart] != nil && (byType[UserPart] != nil || byType[ClientIDPart] != nil) {
		return nil, failed(kerr.InvalidRequest, "Invalid entity filter component combination, IP filter component should not be used with user or clientId filter component.")
	}
	if namesNobody(byType, strict) {
		return nil, kerr.UnknownServerError
	}
	entities, err := a.quotaEntities(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	var out []QuotaDescription
	for _, e := range entities {
		if matches(e.entity, byType, strict) {
			configs, _, err := a.readConfig(ctx, e.entityType, e.name)
			if err != nil {
				return nil, unavailable(err)
			}
			values, err := quotaValues(configs, e.keys)
			if err != nil {
				return nil, err
			}
			if len(values) > 0 {
				out = append(out, QuotaDescription{Entity: e.entity, Values: values})
			}
		}
	}
	return out, nil
}

// namesNobody tells whether a filter is for one entity, part of whose name is empty. Kafka reads the node of such an entity without listing the others, and fails
// since ZooKeeper has no such path. Where others are listed, an empty name is merely nobody's.
func namesNobody(filters map[string]*QuotaFilter, strict bool) bool {
	exact := func(kind string) bool { return filters[kind] != nil && filters[kind].Match == MatchExact }
	empty := func(kind string) bool {
		return exact(kind) && filters[kind].Name != nil && *filters[kind].Name == ""
	}
	switch {
	case filters[IPPart] != nil:
		return empty(IPPart)
	case exact(UserPart) && exact(ClientIDPart):
		return empty(UserPart) || empty(ClientIDPart)
	case strict && filters[ClientIDPart] == nil:
		return empty(UserPart)
	case strict && filters[UserPart] == nil:
		return empty(ClientIDPart)
	}
	return false
}

// matches tells whether an entity has all parts that the filter names, each with a name that fits.
func matches(entity QuotaEntity, filters map[string]*QuotaFilter, strict bool) bool {
	matched := 0
	for _, part := range entity {
		f := filters[part.Type]
		switch {
		case f == nil:
			if strict {
				return false
			}
			continue
		case f.Match == MatchDefault && part.Name != nil,
			f.Match == MatchExact && (part.Name == nil || f.Name == nil || *part.Name != *f.Name):
			return false
		}
		matched++
	}
	return matched == len(filters)
}

// storedEntity is an entity that has a node.
type storedEntity struct {
	entity     QuotaEntity
	entityType zkstate.EntityType
	name       string
	keys       map[string]ConfigType
}

// quotaEntities lists every user, client, client of a user and address that has a node.
func (a *Admin) quotaEntities(ctx context.Context) ([]storedEntity, error) {
	var out []storedEntity
	for _, k := range []struct {
		t    zkstate.EntityType
		part string
		keys map[string]ConfigType
	}{{zkstate.UserEntity, UserPart, clientQuotas}, {zkstate.ClientEntity, ClientIDPart, clientQuotas}, {zkstate.IPEntity, IPPart, ipQuotas}} {
		names, err := a.children(ctx, zkstate.EntityTypePath(k.t))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			own, err := part(k.part, name)
			if err != nil {
				return nil, err
			}
			out = append(out, storedEntity{QuotaEntity{own}, k.t, name, k.keys})
			if k.t != zkstate.UserEntity {
				continue
			}
			clients, err := a.children(ctx, zkstate.EntityPath(k.t, name)+"/"+string(zkstate.ClientEntity))
			if err != nil {
				return nil, err
			}
			for _, client := range clients {
				second, err := part(ClientIDPart, client)
				if err != nil {
					return nil, err
				}
				out = append(out, storedEntity{QuotaEntity{own, second}, k.t, zkstate.UserClientEntity(name, client), k.keys})
			}
		}
	}
	return out, nil
}

func part(kind, name string) (EntityPart, error) {
	if name == zkstate.DefaultEntity {
		return EntityPart{Type: kind}, nil
	}
	plain, err := zkstate.DesanitizeName(name)
	if err != nil {
		return EntityPart{}, fmt.Errorf("%s %q: %w", kind, name, err)
	}
	return EntityPart{Type: kind, Name: &plain}, nil
}

// children lists the names below a directory, sorted; a missing one is empty.
func (a *Admin) children(ctx context.Context, path string) ([]string, error) {
	r, err := a.zk.One(ctx, zkstate.Children(path))
	if err != nil && !errors.Is(err, zkstate.ErrNoNode) {
		return nil, err
	}
	slices.Sort(r.Children)
	return r.Children, nil
}
