package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/acl"
)

// The page of access stands still: nobody has to see access lists change, and each look asks the brokers for all of them.

func accessPage() page {
	return page{path: "/access", title: "Access", file: "access.html", under: "/access", entry: true, data: access, needs: func(who user) bool { return who.records }}
}

// accessData is who may do what and how much, and who logs in by SCRAM. A fault is why one of them cannot be told.
type accessData struct {
	Search                           string
	Open                             bool // no authorizer: everybody may do everything
	ACLs                             pageOf[accessRow]
	Quotas                           []quotaRow
	Users                            []admin.ScramDescription
	ACLFault, QuotaFault, UsersFault string
}

type accessRow struct{ Resource, Name, Pattern, Principal, Host, Permission, Operation string }

type quotaRow struct {
	Who    string
	Values []string
}

func access(ctx context.Context, c *Console, q question) (any, error) {
	d := &accessData{Search: q.get("q")}
	named := matching(d.Search)
	found, err := c.Cluster.ACLs(ctx, acl.Filter{Resource: kmsg.ACLResourceTypeAny, Type: kmsg.ACLResourcePatternTypeAny, Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny})
	if d.Open = errors.Is(err, kerr.SecurityDisabled); !d.Open {
		d.ACLFault = fault(err)
	}
	var rows []accessRow
	for _, b := range found {
		row := accessRow{acl.Word(b.Resource.String()), b.Name, strings.ToLower(b.Pattern.Type.String()), b.Principal, b.Host, acl.Word(b.Permission.String()), acl.Word(b.Operation.String())}
		if named(row.Name + " " + row.Principal) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b accessRow) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Pattern, b.Pattern), cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Permission, b.Permission), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Host, b.Host))
	})
	d.ACLs = paged(rows, q)
	quotas, err := c.Cluster.Quotas(ctx, false)
	d.QuotaFault = fault(err)
	for _, of := range quotas {
		row := quotaRow{Who: quotaWho(of.Entity)}
		for _, v := range of.Values {
			row.Values = append(row.Values, v.Key+"="+strconv.FormatFloat(v.Value, 'f', -1, 64))
		}
		if len(row.Values) > 0 && named(row.Who) {
			d.Quotas = append(d.Quotas, row)
		}
	}
	slices.SortFunc(d.Quotas, func(a, b quotaRow) int { return cmp.Compare(a.Who, b.Who) })
	users, err := c.Cluster.Users(ctx)
	d.UsersFault = fault(err)
	d.Users = slices.DeleteFunc(users, func(u admin.ScramDescription) bool { return !named(u.User) })
	return d, nil
}

func fault(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// quotaWho says whom quotas are for.
func quotaWho(entity admin.QuotaEntity) string {
	var parts []string
	for _, p := range entity {
		part := "every other " + p.Type
		if p.Name != nil {
			part = p.Type + " " + *p.Name
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
