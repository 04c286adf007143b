package native

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/broker/acl"
)

func aclAdd() *cli.Command {
	return command{
		name: "add", usage: "allow or deny somebody something", arguments: "PRINCIPAL RESOURCE...", least: 2, most: -1, alters: true,
		help: `Adds entries for a principal (TYPE:NAME; User:* is everybody) to each of the resources, one for each operation and host. ` + resourceArguments + `; a NAME of * is all of the type. Entries that are there are left alone.

--producer is what a producer needs: create, write and describe on topics, write and describe on transactional ids. --consumer: read and describe on topics, read on groups.

Fields: dry_run, changes (kind, name, action, what, from, to, done, error).

    barnabas acl add User:billing topic:orders group:billing --consumer
    barnabas acl add User:alice topic:pay. --prefixed --op read,describe --host 10.0.0.7 --dry-run
    barnabas acl add User:mallory topic:* --op all --deny`,
		flags: []cli.Flag{
			many("op", "`OPERATION`, such as read or alter-configs, or all; any number of times, also with commas"),
			many("host", "only from `ADDRESS`; any number of times (default: from everywhere)"),
			&cli.BoolFlag{Name: "deny", Usage: "deny it: that counts for more than all that allow"},
			&cli.BoolFlag{Name: "producer", Usage: "what a producer needs"},
			&cli.BoolFlag{Name: "consumer", Usage: "what a consumer needs"},
			&cli.BoolFlag{Name: "idempotent", Usage: "with --producer: idempotent-write on the cluster too, which brokers before 3.0 want"},
			prefixedFlag(),
		},
		run: addACLs,
	}.build()
}

func addACLs(c *call) (document, error) {
	bindings, err := c.asked()
	if err != nil {
		return nil, err
	}
	var there []acl.Binding
	seen := map[acl.Pattern]bool{}
	for _, b := range bindings {
		if seen[b.Pattern] {
			continue
		}
		seen[b.Pattern] = true
		found, err := c.cluster.ACLs(c.ctx, acl.Filter{Resource: b.Resource, Name: &b.Name, Type: b.Pattern.Type, Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny})
		if err != nil {
			return nil, err
		}
		there = append(there, found...)
	}
	missing := slices.DeleteFunc(slices.Clone(bindings), func(b acl.Binding) bool { return slices.Contains(there, b) })
	d := &changes{documentVersion, c.Bool("dry-run"), []change{}}
	failed := make([]error, len(missing))
	if !d.DryRun && len(missing) > 0 {
		if failed, err = c.cluster.AddACLs(c.ctx, missing); err != nil {
			return nil, err
		}
	}
	for _, b := range bindings {
		one := aclChange("add", b)
		at := slices.Index(missing, b)
		if at < 0 {
			one.Action, one.What = "leave", one.What+": it is there"
			_ = d.result(one, nil)
			continue
		}
		_ = d.result(one, failed[at])
	}
	return d, exitOfFirst(failed)
}

func aclChange(action string, b acl.Binding) change {
	line := aclLineOf(b)
	name := line.resource()
	if b.Pattern.Type == kmsg.ACLResourcePatternTypePrefixed {
		name += " (prefixed)"
	}
	return change{Kind: "acl", Name: name, Action: action, What: line.sentence()}
}

// asked are the entries that a call of add means, in the order of its resources.
func (c *call) asked() ([]acl.Binding, error) {
	args := c.Args().Slice()
	principal, err := acl.ParsePrincipal(args[0])
	if err != nil {
		return nil, wrongUsage("the principal %s is not of the form TYPE:NAME, such as User:alice", args[0])
	}
	needs, err := c.needs()
	if err != nil {
		return nil, err
	}
	resources := args[1:]
	if c.Bool("idempotent") && !slices.Contains(resources, "cluster") {
		resources = append(resources, "cluster")
	}
	hosts := c.values("host")
	if len(hosts) == 0 {
		hosts = []string{acl.Wildcard}
	}
	permission := kmsg.ACLPermissionTypeAllow
	if c.Bool("deny") {
		permission = kmsg.ACLPermissionTypeDeny
	}
	var all []acl.Binding
	for _, text := range resources {
		kind, name, err := readResource(text, false)
		if err != nil {
			return nil, err
		}
		pattern := acl.Pattern{Resource: kind, Name: *name, Type: c.patternType()}
		if kind == kmsg.ACLResourceTypeCluster {
			pattern.Type = kmsg.ACLResourcePatternTypeLiteral
		}
		ops, err := operationsOn(kind, needs)
		if err != nil {
			return nil, err
		}
		for _, op := range ops {
			for _, host := range hosts {
				b := acl.Binding{Pattern: pattern, Entry: acl.Entry{Principal: principal.String(), Host: host, Operation: op, Permission: permission}}
				if !slices.Contains(all, b) {
					all = append(all, b)
				}
			}
		}
	}
	return all, nil
}

// needs are what the roles that were named need, or the operations that were spelled out.
func (c *call) needs() ([]acl.Need, error) {
	ops, err := c.operations()
	producer, consumer := c.Bool("producer"), c.Bool("consumer")
	switch {
	case err != nil:
		return nil, err
	case len(ops) > 0 == (producer || consumer):
		return nil, wrongUsage("either --op, or --producer and --consumer, have to be given")
	case c.Bool("deny") && len(ops) == 0:
		return nil, wrongUsage("--deny goes with --op")
	case c.Bool("idempotent") && !producer:
		return nil, wrongUsage("--idempotent goes with --producer")
	case len(ops) > 0:
		return []acl.Need{{Resource: kmsg.ACLResourceTypeAny, Operations: ops}}, nil
	}
	var needs []acl.Need
	if producer {
		needs = acl.ProducerNeeds()
	}
	if c.Bool("idempotent") {
		needs = append(needs, acl.IdempotentNeed())
	}
	if consumer {
		needs = append(needs, acl.ConsumerNeeds()...)
	}
	return needs, nil
}

// operationsOn are those that are needed on a resource. One on which nothing is needed was not meant.
func operationsOn(resource kmsg.ACLResourceType, needs []acl.Need) ([]kmsg.ACLOperation, error) {
	var ops []kmsg.ACLOperation
	for _, n := range needs {
		if n.Resource != resource && n.Resource != kmsg.ACLResourceTypeAny {
			continue
		}
		for _, op := range n.Operations {
			if err := suits(op, resource); err != nil {
				return nil, err
			}
			if !slices.Contains(ops, op) {
				ops = append(ops, op)
			}
		}
	}
	if len(ops) == 0 {
		return nil, wrongUsage("nothing is needed on a %s", kebab(resource))
	}
	return ops, nil
}

func aclRemove() *cli.Command {
	return command{
		name: "remove", usage: "take entries away", arguments: "PRINCIPAL RESOURCE...", least: 2, most: -1, alters: true, risky: true,
		help: `Takes away the entries of a principal on the resources, all or those that the options choose, and names each. The principal may be the word any. Only lists of exactly the name are touched: with --prefixed those of the prefix. ` + resourceArguments + `. At a terminal the first resource has to be typed; elsewhere --yes has to be given.

Fields: dry_run, changes (kind, name, action, what, from, to, done, error).

    barnabas acl remove User:alice topic:orders --op write --dry-run
    barnabas acl remove any topic:old. --prefixed --yes`,
		flags: append(entryFlags(), prefixedFlag()),
		run: func(c *call) (document, error) {
			args := c.Args().Slice()
			for _, text := range args[1:] {
				if _, _, err := readResource(text, false); err != nil {
					return nil, err
				}
			}
			filters, err := chosen(args[1:], args[:1], c.patternType())
			if err != nil {
				return nil, err
			}
			if filters, err = c.narrowed(filters); err != nil {
				return nil, err
			}
			if err := c.sure("taking access lists away from "+strings.Join(args[1:], ", "), args[1]); err != nil {
				return nil, err
			}
			found, err := c.found(filters)
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				return nil, &cluster.NotFoundError{Kind: "access list entry", Name: "for " + args[0] + " on " + strings.Join(args[1:], ", ")}
			}
			d := &changes{documentVersion, c.Bool("dry-run"), []change{}}
			if !d.DryRun {
				err = c.cluster.RemoveACLs(c.ctx, filters)
			}
			for _, b := range found {
				_ = d.result(aclChange("remove", b), err)
			}
			return d, exitOfFirst([]error{err})
		},
	}.build()
}
