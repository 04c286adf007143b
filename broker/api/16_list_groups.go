package api

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/group"
)

// ListGroups, key 16, versions 0 to 5.
//
//	3  flexible
//	4  filter by state; states in the answer (KIP-518)
//	5  filter by type; types in the answer (KIP-848). All are "classic" here.
func (d *Dispatcher) listGroups(c *call, req *kmsg.ListGroupsRequest) {
	mayAll := d.seesCluster(c, kmsg.ACLOperationDescribe)
	d.deps.Groups.List(func(list []group.Listed, err error) {
		resp := kmsg.NewPtrListGroupsResponse()
		resp.ErrorCode, _ = code(err)
		for _, g := range list {
			if !passes(req.StatesFilter, g.State.String()) || !passes(req.TypesFilter, classicGroup) {
				continue
			}
			if !mayAll && !d.sees(c, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeGroup, g.Group) {
				continue
			}
			row := kmsg.NewListGroupsResponseGroup()
			row.Group, row.ProtocolType, row.GroupState, row.GroupType = g.Group, g.ProtocolType, g.State.String(), classicGroup
			resp.Groups = append(resp.Groups, row)
		}
		c.answer(resp)
	})
}

const classicGroup = "classic"

// passes tells whether a filter lets a name through. An empty one lets all.
func passes(filter []string, name string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, name) })
}
