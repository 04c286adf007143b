package admin

import "context"

// EntityPart is one part of a quota's entity: {"user", "alice"}, {"client-id", nil} for the default, {"ip", ...}.
type EntityPart struct {
	Type string
	Name *string // nil: the default of that type
}

// QuotaEntity is whom a quota is for: a user, a client id, both, or an address.
type QuotaEntity []EntityPart

// QuotaValue is one limit, such as {"producer_byte_rate", 1024}.
type QuotaValue struct {
	Key   string
	Value float64
}

// QuotaOp sets or removes one limit (AlterClientQuotas).
type QuotaOp struct {
	Key    string
	Value  float64
	Remove bool
}

// QuotaSpec changes the limits of one entity.
type QuotaSpec struct {
	Entity QuotaEntity
	Ops    []QuotaOp
}

// QuotaResult answers a QuotaSpec.
type QuotaResult struct {
	Entity QuotaEntity
	Err    error
}

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
	panic("not built")
}

// AlterClientQuotas changes quotas.
func (a *Admin) AlterClientQuotas(ctx context.Context, specs []QuotaSpec, validateOnly bool) []QuotaResult {
	panic("not built")
}
