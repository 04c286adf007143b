package native

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/urfave/cli/v2"

	"barnabas/admin"
	"barnabas/admin/cluster"
)

// An entity has settings: a topic, a broker, all brokers together ("broker default"), a user or a client, of which "default" is all that have none of their own.

const entities = "topic NAME, broker ID, broker default, user NAME, user default, client ID or client default"

func configCommand() *cli.Command {
	return parent("config", "show, set, unset and compare settings of topics, brokers, users and clients", configGet(), configSet(), configUnset(), configDiff())
}

type configDocument struct {
	Version  int           `json:"version"`
	Kind     string        `json:"kind"`
	Name     string        `json:"name"`
	Settings []settingLine `json:"settings"`
}

type settingLine struct {
	Name      string  `json:"name"`
	Value     *string `json:"value"` // null: not told, such as a password
	Source    string  `json:"source"`
	Default   *string `json:"default"` // what it is when nobody has set it; null: not told
	ReadOnly  bool    `json:"read_only"`
	Sensitive bool    `json:"sensitive"`
}

func (d *configDocument) show(w io.Writer) {
	rows := [][]string{{"SETTING", "VALUE", "SOURCE", "DEFAULT"}}
	for _, s := range d.Settings {
		source := s.Source
		if s.ReadOnly {
			source += ", read-only"
		}
		rows = append(rows, []string{s.Name, shownSetting(s), source, text(s.Default)})
	}
	columns(w, rows)
}

func shownSetting(s settingLine) string {
	if s.Value == nil && s.Sensitive {
		return "(hidden)"
	}
	return text(s.Value)
}

// sources are what the places of a setting are called.
var sources = map[kmsg.ConfigSource]string{
	kmsg.ConfigSourceDynamicTopicConfig: "topic", kmsg.ConfigSourceDynamicBrokerConfig: "broker", kmsg.ConfigSourceDynamicDefaultBrokerConfig: "all-brokers",
	kmsg.ConfigSourceStaticBrokerConfig: "file", kmsg.ConfigSourceDefaultConfig: "default", kmsg.ConfigSourceDynamicBrokerLoggerConfig: "logger",
}

func settingOf(s cluster.DescribedSetting) settingLine {
	line := settingLine{Name: s.Name, Value: s.Value, Source: cmp.Or(sources[s.Source], "unknown"), ReadOnly: s.ReadOnly, Sensitive: s.Sensitive}
	if s.IsDefault() {
		line.Default = s.Value
	}
	for _, from := range s.Synonyms {
		if from.Source == kmsg.ConfigSourceDefaultConfig {
			line.Default = from.Value
		}
	}
	return line
}

// described are the settings of an entity, by name.
func (c *call) described(kind, name string) ([]settingLine, error) {
	var list []cluster.DescribedSetting
	var err error
	switch kind {
	case "topic":
		if err := c.needTopics([]string{name}); err != nil {
			return nil, err
		}
		list, err = c.cluster.TopicConfig(c.ctx, name)
	case "broker":
		if name == everybody {
			list, err = c.cluster.DefaultBrokerConfig(c.ctx)
			break
		}
		var id int32
		if id, err = c.registered(name); err == nil {
			list, err = c.cluster.BrokerConfig(c.ctx, id)
		}
	case "user", "client":
		var quotas map[string]float64
		quotas, err = c.cluster.QuotasOf(c.ctx, quotaEntity(kind, name))
		for _, key := range slices.Sorted(maps.Keys(quotas)) {
			value := strconv.FormatFloat(quotas[key], 'f', -1, 64)
			list = append(list, cluster.DescribedSetting{Name: key, Value: &value, Source: -1})
		}
	default:
		err = wrongUsage("%s is none of %s", kind, entities)
	}
	lines := []settingLine{}
	for _, s := range list {
		line := settingOf(s)
		if kind == "user" || kind == "client" {
			line.Source = kind
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b settingLine) int { return cmp.Compare(a.Name, b.Name) })
	return lines, err
}

const everybody = "default"

// quotaEntity is a user or a client alone, or all that have no quotas of their own.
func quotaEntity(kind, name string) admin.QuotaEntity {
	part := admin.EntityPart{Type: map[string]string{"user": admin.UserPart, "client": admin.ClientIDPart}[kind]}
	if name != everybody {
		part.Name = &name
	}
	return admin.QuotaEntity{part}
}

// registered reads the id of a broker that is there.
func (c *call) registered(text string) (int32, error) {
	id, err := brokerID(text)
	if err != nil {
		return 0, err
	}
	alive, _, err := c.cluster.Brokers(c.ctx)
	if err == nil && !slices.ContainsFunc(alive, func(b cluster.Broker) bool { return b.ID == id }) {
		err = &cluster.NotFoundError{Kind: "broker", Name: text}
	}
	return id, err
}

func configGet() *cli.Command {
	return command{
		name: "get", usage: "show settings with where they come from", arguments: "KIND NAME [SETTING...]", least: 2, most: -1,
		help: `KIND NAME is one of ` + entities + `. Without names of settings it shows those that somebody has set, with --all every one that holds. What a setting is by default stands beside it, where the broker tells. Settings of users and clients are quotas.

Source is topic, broker, all-brokers, file (the broker's own), default, user or client.

Fields: kind, name, settings (name, value, source, default, read_only, sensitive).

    barnabas config get topic orders
    barnabas config get broker 1 log.retention.ms -o json`,
		flags: []cli.Flag{&cli.BoolFlag{Name: "all", Usage: "those too that nobody has set"}},
		run: func(c *call) (document, error) {
			args := c.Args().Slice()
			lines, err := c.described(args[0], args[1])
			if err != nil {
				return nil, err
			}
			d := &configDocument{documentVersion, args[0], args[1], []settingLine{}}
			for _, line := range lines {
				set := line.Source != "default" && (args[0] != "topic" || line.Source == "topic")
				if wanted := args[2:]; len(wanted) > 0 && slices.Contains(wanted, line.Name) || len(wanted) == 0 && (set || c.Bool("all")) {
					d.Settings = append(d.Settings, line)
				}
			}
			for _, name := range args[2:] {
				if !slices.ContainsFunc(d.Settings, func(s settingLine) bool { return s.Name == name }) {
					return nil, &cluster.NotFoundError{Kind: "setting", Name: name}
				}
			}
			return d, nil
		},
	}.build()
}

const changeFields = `Fields: dry_run, changes (kind, name, action, what, from, to, done, error).`

func configSet() *cli.Command {
	return command{
		name: "set", usage: "set settings, all or none", arguments: "KIND NAME SETTING=VALUE...", least: 3, most: -1, alters: true,
		help: `KIND NAME is one of ` + entities + `. With --dry-run brokers are asked whether they would do it.

` + changeFields + `

    barnabas config set topic orders retention.ms=86400000 cleanup.policy=compact,delete --dry-run
    barnabas config set client billing consumer_byte_rate=1048576`,
		run: func(c *call) (document, error) {
			args := c.Args().Slice()
			set, err := settings(args[2:])
			if err != nil {
				return nil, err
			}
			return c.alter(args[0], args[1], set, nil)
		},
	}.build()
}

func configUnset() *cli.Command {
	return command{
		name: "unset", usage: "take settings back", arguments: "KIND NAME SETTING...", least: 3, most: -1, alters: true,
		help: `What holds then is what 'barnabas config get' shows as default, or what brokers have. KIND NAME is one of ` + entities + `.

` + changeFields,
		run: func(c *call) (document, error) {
			args := c.Args().Slice()
			return c.alter(args[0], args[1], nil, args[2:])
		},
	}.build()
}

// alter changes settings of an entity, all or none.
func (c *call) alter(kind, name string, set []cluster.Setting, remove []string) (document, error) {
	now, err := c.described(kind, name)
	if err != nil {
		return nil, err
	}
	own := map[string]*string{}
	for _, s := range now {
		if s.Source == kind || name == everybody && s.Source == "all-brokers" {
			own[s.Name] = s.Value
		}
	}
	d := &changes{documentVersion, c.Bool("dry-run"), []change{}}
	switch kind {
	case "user", "client":
		err = c.alterQuotas(kind, name, set, remove, d.DryRun)
	default:
		resource := name
		if kind == "broker" && name == everybody {
			resource = ""
		}
		err = c.cluster.AlterEntity(c.ctx, kind == "topic", resource, set, remove, d.DryRun)
	}
	for _, s := range set {
		_ = d.result(change{Kind: kind, Name: name, Action: "set", What: s.Name, From: own[s.Name], To: &s.Value}, err)
	}
	for _, key := range remove {
		_ = d.result(change{Kind: kind, Name: name, Action: "remove", What: key, From: own[key]}, err)
	}
	return d, exitOfFirst([]error{err})
}

func (c *call) alterQuotas(kind, name string, set []cluster.Setting, remove []string, dry bool) error {
	var ops []admin.QuotaOp
	for _, s := range set {
		n, err := strconv.ParseFloat(s.Value, 64)
		if err != nil {
			return wrongUsage("%s: %q is not a number", s.Name, s.Value)
		}
		ops = append(ops, admin.QuotaOp{Key: s.Name, Value: n})
	}
	for _, key := range remove {
		ops = append(ops, admin.QuotaOp{Key: key, Remove: true})
	}
	return c.cluster.AlterQuotas(c.ctx, quotaEntity(kind, name), ops, dry)
}

type diffDocument struct {
	Version     int        `json:"version"`
	Kind        string     `json:"kind"`
	Left        string     `json:"left"`
	Right       string     `json:"right"` // "default": what holds when nobody has set it
	Differences []diffLine `json:"differences"`
}

type diffLine struct {
	Name  string  `json:"name"`
	Left  *string `json:"left"`
	Right *string `json:"right"`
}

func (d *diffDocument) show(w io.Writer) {
	if len(d.Differences) == 0 {
		fmt.Fprintf(w, "No setting of %s %s and %s differs.\n", d.Kind, d.Left, d.Right)
		return
	}
	rows := [][]string{{"SETTING", strings.ToUpper(d.Kind) + " " + d.Left, d.Right}}
	for _, l := range d.Differences {
		rows = append(rows, []string{l.Name, text(l.Left), text(l.Right)})
	}
	columns(w, rows)
}

// differing are the settings that two lists have with different values; what is told to nobody is not compared.
func differing(left, right []settingLine) []diffLine {
	a, b, hidden := map[string]*string{}, map[string]*string{}, map[string]bool{}
	for _, s := range left {
		a[s.Name], hidden[s.Name] = s.Value, s.Sensitive
	}
	for _, s := range right {
		b[s.Name], hidden[s.Name] = s.Value, hidden[s.Name] || s.Sensitive
	}
	out := []diffLine{}
	for _, name := range slices.Sorted(maps.Keys(hidden)) {
		l, r := a[name], b[name]
		same := l == r || l != nil && r != nil && *l == *r
		if !same && !hidden[name] {
			out = append(out, diffLine{name, l, r})
		}
	}
	return out
}

func configDiff() *cli.Command {
	return command{
		name: "diff", usage: "compare settings with those of another, or with the defaults", arguments: "KIND NAME [OTHER]", least: 2, most: 3,
		help: `Shows what differs of all settings that hold for two topics, brokers, users or clients; without OTHER, between what holds and what would if nobody had set it. Passwords are not compared.

Fields: kind, left, right, differences (name, left, right).

    barnabas config diff topic orders payments
    barnabas config diff broker 1 2`,
		run: func(c *call) (document, error) {
			kind, name := c.Args().Get(0), c.Args().Get(1)
			left, err := c.described(kind, name)
			if err != nil {
				return nil, err
			}
			if c.NArg() == 3 {
				right, err := c.described(kind, c.Args().Get(2))
				if err != nil {
					return nil, err
				}
				return &diffDocument{documentVersion, kind, name, c.Args().Get(2), differing(left, right)}, nil
			}
			var defaults []settingLine
			left = slices.DeleteFunc(left, func(s settingLine) bool { return s.Source == "default" })
			for _, s := range left {
				s.Value = s.Default
				defaults = append(defaults, s)
			}
			return &diffDocument{documentVersion, kind, name, everybody, differing(left, defaults)}, nil
		},
	}.build()
}
