package native

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"barnabas/admin"
	"barnabas/admin/cluster"
)

func quotaCommand() *cli.Command {
	return parent("quota", "show and change what users, clients and addresses may use", quotaList(), quotaSet(), quotaUnset())
}

type quotasDocument struct {
	Version int          `json:"version"`
	Quotas  []quotaEntry `json:"quotas"`
}

// quotaEntry are the quotas of somebody. Of user, client and ip those are null that are no part of whom the quotas are for. The word default stands for all that have none of their own; since somebody may be called so, too,
// Defaults tells.
type quotaEntry struct {
	User     *string            `json:"user"`
	Client   *string            `json:"client"`
	IP       *string            `json:"ip"`
	Quotas   map[string]float64 `json:"quotas"`
	Defaults []string           `json:"defaults"` // which of the three stand for all that have none of their own
}

func (d *quotasDocument) show(w io.Writer) {
	rows := [][]string{{"USER", "CLIENT", "IP", "QUOTA", "VALUE"}}
	for _, e := range d.Quotas {
		for _, key := range slices.Sorted(maps.Keys(e.Quotas)) {
			rows = append(rows, []string{text(e.User), text(e.Client), text(e.IP), key, quotaNumber(e.Quotas[key]) + quotaUnit(key, e.Quotas[key])})
		}
	}
	columns(w, rows)
}

func quotaNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// quotaUnit says what a number means, for who reads a table.
func quotaUnit(key string, n float64) string {
	switch {
	case strings.HasSuffix(key, "_byte_rate"):
		return " (" + cluster.ByteCount(int64(n)) + "/s)"
	case key == "request_percentage":
		return " %"
	case strings.HasSuffix(key, "_rate"):
		return " /s"
	}
	return ""
}

func quotaEntryOf(q admin.QuotaDescription) quotaEntry {
	e := quotaEntry{Quotas: map[string]float64{}, Defaults: []string{}}
	for _, p := range q.Entity {
		name := p.Name
		if name == nil {
			name = words("%s", everybody)
		}
		switch p.Type {
		case admin.UserPart:
			e.User = name
		case admin.ClientIDPart:
			e.Client = name
		case admin.IPPart:
			e.IP = name
		}
		if p.Name == nil {
			e.Defaults = append(e.Defaults, quotaWords[p.Type])
		}
	}
	for _, v := range q.Values {
		e.Quotas[v.Key] = v.Value
	}
	return e
}

// quotaWords are what the native tools call the parts of whom quotas are for.
var quotaWords = map[string]string{admin.UserPart: "user", admin.ClientIDPart: "client", admin.IPPart: "ip"}

// quotaParts in the order in which they are asked for.
var quotaParts = []string{admin.UserPart, admin.ClientIDPart, admin.IPPart}

func quotasOf(found []admin.QuotaDescription) *quotasDocument {
	d := &quotasDocument{documentVersion, []quotaEntry{}}
	for _, q := range found {
		if len(q.Values) > 0 {
			d.Quotas = append(d.Quotas, quotaEntryOf(q))
		}
	}
	slices.SortFunc(d.Quotas, func(a, b quotaEntry) int {
		return cmp.Or(cmp.Compare(text(a.User), text(b.User)), cmp.Compare(text(a.Client), text(b.Client)), cmp.Compare(text(a.IP), text(b.IP)))
	})
	return d
}

// whoFlags name whom quotas are for.
func whoFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "user", Usage: "the user `NAME`"},
		&cli.StringFlag{Name: "client", Usage: "the client `ID`, of any user or with --user of that one"},
		&cli.StringFlag{Name: "ip", Usage: "the `ADDRESS` that clients connect from"},
		&cli.BoolFlag{Name: "user-default", Usage: "all users that have none of their own"},
		&cli.BoolFlag{Name: "client-default", Usage: "all clients that have none of their own"},
		&cli.BoolFlag{Name: "ip-default", Usage: "all addresses that have none of their own"},
	}
}

// who is whom the options name.
func (c *call) who() (admin.QuotaEntity, error) {
	var entity admin.QuotaEntity
	for _, kind := range quotaParts {
		word := quotaWords[kind]
		named, everyone := c.IsSet(word), c.Bool(word+"-default")
		switch {
		case named && everyone:
			return nil, wrongUsage("either --%s or --%[1]s-default can be given", word)
		case named && c.String(word) == "":
			return nil, wrongUsage("--%s has no name; --%[1]s-default is all that have none of their own", word)
		case named:
			name := c.String(word)
			entity = append(entity, admin.EntityPart{Type: kind, Name: &name})
		case everyone:
			entity = append(entity, admin.EntityPart{Type: kind})
		}
	}
	if len(entity) > 1 && entity[len(entity)-1].Type == admin.IPPart {
		return nil, wrongUsage("an address goes with neither a user nor a client")
	}
	return entity, nil
}

// whoText is how people read of whom quotas are.
func whoText(entity admin.QuotaEntity) string {
	var parts []string
	for _, p := range entity {
		name := everybody
		if p.Name != nil {
			name = strconv.Quote(*p.Name)
		}
		parts = append(parts, quotaWords[p.Type]+" "+name)
	}
	return strings.Join(parts, ", ")
}

var quotaNames = []string{"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate", "connection_creation_rate"}

const quotaKeys = "producer_byte_rate, consumer_byte_rate (bytes a second on each broker), request_percentage (of one thread's time) and controller_mutation_rate (partitions made or deleted a second); addresses have connection_creation_rate"

func quotaList() *cli.Command {
	return command{
		name: "list", usage: "list quotas", watched: true,
		help: `Lists all quotas, or those for whom options name; --user alice alone also lists those of alice's clients.

Quotas are ` + quotaKeys + `.

Fields: quotas (user, client, ip, quotas, defaults). Of user, client and ip those are null that are no part of whom the quotas are for; defaults names those that stand for all that have none of their own.

    barnabas quota list
    barnabas quota list --user alice -o json`,
		flags: whoFlags(),
		run: func(c *call) (document, error) {
			entity, err := c.who()
			if err != nil {
				return nil, err
			}
			var filters []admin.QuotaFilter
			for _, p := range entity {
				f := admin.QuotaFilter{Type: p.Type, Match: admin.MatchDefault, Name: p.Name}
				if p.Name != nil {
					f.Match = admin.MatchExact
				}
				filters = append(filters, f)
			}
			found, err := c.cluster.Quotas(c.ctx, false, filters...)
			if err != nil {
				return nil, err
			}
			return quotasOf(found), nil
		},
	}.build()
}

func quotaSet() *cli.Command {
	return command{
		name: "set", usage: "set quotas of a user, a client, both or an address", arguments: "QUOTA=VALUE...", least: 1, most: -1, alters: true,
		help: `Sets quotas, all or none. Quotas are ` + quotaKeys + `. Rates of bytes may be written as 10MB/s or 50MiB. With --dry-run brokers are asked whether they would do it.

` + changeFields + `

    barnabas quota set producer_byte_rate=10MB/s consumer_byte_rate=20MB/s --user alice
    barnabas quota set request_percentage=50 --user alice --client batch
    barnabas quota set connection_creation_rate=20 --ip-default --dry-run`,
		flags: whoFlags(),
		run: func(c *call) (document, error) {
			given, err := settings(c.Args().Slice())
			if err != nil {
				return nil, err
			}
			var ops []admin.QuotaOp
			for _, s := range given {
				value, err := quotaValue(s.Name, s.Value)
				if err != nil {
					return nil, err
				}
				ops = append(ops, admin.QuotaOp{Key: s.Name, Value: value})
			}
			return c.changeQuotas(ops)
		},
	}.build()
}

// quotaValue reads a quota; rates of bytes may have units.
func quotaValue(key, text string) (float64, error) {
	if n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64); err == nil && (key == "request_percentage" || !strings.HasSuffix(text, "%")) {
		return n, nil
	}
	if strings.HasSuffix(key, "_byte_rate") {
		n, err := readRate(text)
		return float64(n), err
	}
	return 0, wrongUsage("%s: %q is not a number", key, text)
}

func quotaUnset() *cli.Command {
	return command{
		name: "unset", usage: "take quotas back", arguments: "[QUOTA...]", least: 0, most: -1, alters: true,
		help: `Takes quotas back, by name, or with --all every one; what holds then is what the defaults say.

` + changeFields + `

    barnabas quota unset producer_byte_rate --user alice
    barnabas quota unset --all --user alice --client batch`,
		flags: append(whoFlags(), &cli.BoolFlag{Name: "all", Usage: "all quotas that it has"}),
		run: func(c *call) (document, error) {
			if c.Bool("all") == (c.NArg() > 0) {
				return nil, wrongUsage("either names of quotas or --all have to be given")
			}
			var ops []admin.QuotaOp
			for _, key := range c.Args().Slice() {
				ops = append(ops, admin.QuotaOp{Key: key, Remove: true})
			}
			return c.changeQuotas(ops)
		},
	}.build()
}

// changeQuotas does changes, or with none takes back all.
func (c *call) changeQuotas(ops []admin.QuotaOp) (document, error) {
	entity, err := c.who()
	if err != nil {
		return nil, err
	}
	if len(entity) == 0 {
		return nil, wrongUsage("whom it is for has to be given: --user, --client, --ip or one of their defaults")
	}
	now, err := c.cluster.QuotasOf(c.ctx, entity)
	if err != nil {
		return nil, err
	}
	if len(ops) == 0 {
		for _, key := range slices.Sorted(maps.Keys(now)) {
			ops = append(ops, admin.QuotaOp{Key: key, Remove: true})
		}
	}
	for _, op := range ops {
		if _, set := now[op.Key]; op.Remove && !set {
			return nil, &cluster.NotFoundError{Kind: "quota", Name: op.Key + " of " + whoText(entity)}
		}
	}
	d := &changes{documentVersion, c.Bool("dry-run"), []change{}}
	if len(ops) > 0 {
		err = c.cluster.AlterQuotas(c.ctx, entity, ops, d.DryRun)
	}
	for _, op := range ops {
		one := change{Kind: "quota", Name: whoText(entity), Action: "set", What: op.Key}
		if before, set := now[op.Key]; set {
			one.From = words("%s", quotaNumber(before))
		}
		if op.Remove {
			one.Action = "remove"
		} else {
			one.To = words("%s", quotaNumber(op.Value))
		}
		_ = d.result(one, err)
	}
	return d, exitOfFirst([]error{err})
}
