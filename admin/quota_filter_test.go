package admin

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Which filters for an empty name Apache Kafka 3.9.1 fails on: those for which it reads one node.
func TestAFilterForOneEntityWithoutANameFails(t *testing.T) {
	empty, alice := "", "alice"
	exact := func(kind string, name *string) QuotaFilter {
		return QuotaFilter{Type: kind, Match: MatchExact, Name: name}
	}
	for _, c := range []struct {
		filters []QuotaFilter
		strict  bool
		want    bool
	}{
		{[]QuotaFilter{exact(IPPart, &empty)}, false, true},
		{[]QuotaFilter{exact(IPPart, &empty)}, true, true},
		{[]QuotaFilter{exact(IPPart, &alice)}, true, false},
		{[]QuotaFilter{exact(UserPart, &empty)}, true, true},
		{[]QuotaFilter{exact(UserPart, &empty)}, false, false},
		{[]QuotaFilter{exact(ClientIDPart, &empty)}, true, true},
		{[]QuotaFilter{exact(ClientIDPart, &empty)}, false, false},
		{[]QuotaFilter{exact(UserPart, &alice), exact(ClientIDPart, &empty)}, false, true},
		{[]QuotaFilter{exact(UserPart, &alice), exact(ClientIDPart, &alice)}, true, false},
		{[]QuotaFilter{exact(UserPart, &empty), {Type: ClientIDPart, Match: MatchAny}}, true, false},
		{[]QuotaFilter{{Type: IPPart, Match: MatchDefault}}, true, false},
		{nil, true, false},
	} {
		byType := map[string]*QuotaFilter{}
		for i := range c.filters {
			byType[c.filters[i].Type] = &c.filters[i]
		}
		assert.Equal(t, c.want, namesNobody(byType, c.strict), "%v strict=%t", c.filters, c.strict)
	}
}
