package native

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func consumeCommand() *cli.Command {
	c := command{
		name: "consume", usage: "print records of a topic, from anywhere to the end", arguments: "TOPIC", least: 1, most: 1, lasts: true, formats: []string{"table", "json", "json-rows", "yaml"},
		help: `Prints records, and ends where the partitions ended when it began, unless --follow is given. It is in no group and commits nothing. Records of transactions that are open or were aborted are printed too.

-o json (or json-rows) gives a record a line, from which 'barnabas produce --input json-rows' makes the same record: what is not valid UTF-8 is base64 in key_base64 or value_base64, and null is null. With -f a record is printed as a format says: %t topic, %p partition, %o offset, %T milliseconds, %k key, %v value, %K and %V their lengths (-1 of null), %h headers, %%; \n, \t, \0.

Times are 2006-01-02T15:04:05.000 in UTC, or with Z or +01:00, or a duration such as 10m before now, or now.

Fields: topic, partition, offset, timestamp (milliseconds; -1 is none), timestamp_type, headers (key, value), key, value; key_base64 and value_base64 in place of key and value where they are no text.

    barnabas consume orders --tail 20
    barnabas consume orders --since 10m --grep-value refund --header tenant=a -o json-rows
    barnabas consume orders -o json-rows | barnabas produce orders-copy --input json-rows`,
		flags: []cli.Flag{
			many("partition", "only the partition with this `NUMBER`; any number of times"),
			&cli.StringFlag{Name: "from", Value: "oldest", Usage: "where to begin: oldest, newest, an `OFFSET` or a time"},
			&cli.StringFlag{Name: "since", Usage: "begin at the first records of `TIME`, such as 10m"},
			&cli.StringFlag{Name: "until", Usage: "end before the first records of `TIME`"},
			&cli.IntFlag{Name: "tail", Usage: "only the last `N` records, of all partitions together, by time"},
			&cli.IntFlag{Name: "max", Usage: "end after `N` records"},
			&cli.BoolFlag{Name: "follow", Usage: "go on with what comes, until interrupted"},
			&cli.StringFlag{Name: "grep-key", Usage: "only records whose key a regular `EXPRESSION` matches"},
			&cli.StringFlag{Name: "grep-value", Usage: "only records whose value a regular `EXPRESSION` matches"},
			many("header", "only records with the header `NAME=VALUE`; any number of times"),
			&cli.StringFlag{Name: "format", Aliases: []string{"f"}, Usage: "how a record is printed, as `FORMAT`"},
		},
		run: consume,
	}.build()
	c.Category = category
	return c
}

// consumption is one run of consume.
type consumption struct {
	*call
	topic  string
	parts  []*reading // by partition
	wanted func(*kgo.Record) bool
	print  func(*kgo.Record) error
	left   int // records that may still be printed; -1: any number
	out    *bufio.Writer
}

// reading is a partition as far as it has been read.
type reading struct {
	partition      plan.Partition
	start, at, end int64
	leader         int32
	failed         int
}

func consume(c *call) (document, error) {
	k := &consumption{call: c, topic: c.Args().First(), left: -1, out: bufio.NewWriter(c.App.Writer)}
	if n := c.Int("max"); n > 0 {
		k.left = n
	}
	if c.IsSet("tail") && (c.IsSet("since") || c.IsSet("from") || c.Bool("follow")) {
		return nil, wrongUsage("--tail goes with neither --from, --since nor --follow")
	}
	if c.IsSet("from") && c.IsSet("since") {
		return nil, wrongUsage("either --from or --since can be given")
	}
	var err error
	if k.wanted, err = readFilter(c); err != nil {
		return nil, err
	}
	if k.print, err = k.printer(); err != nil {
		return nil, err
	}
	if err = k.locate(time.Now()); err == nil {
		if n := c.Int("tail"); n > 0 {
			err = k.tail(n)
		} else {
			err = k.readOn()
		}
	}
	if flushed := k.out.Flush(); err == nil {
		err = flushed
	}
	if errors.Is(c.ctx.Err(), context.Canceled) || errors.Is(err, errEnough) {
		return nil, nil
	}
	return nil, err
}

// readFilter makes one question of what is asked for.
func readFilter(c *call) (func(*kgo.Record) bool, error) {
	var all []func(*kgo.Record) bool
	for option, of := range map[string]func(*kgo.Record) []byte{"grep-key": func(r *kgo.Record) []byte { return r.Key }, "grep-value": func(r *kgo.Record) []byte { return r.Value }} {
		if !c.IsSet(option) {
			continue
		}
		pattern, err := regexp.Compile(c.String(option))
		if err != nil {
			return nil, wrongUsage("--%s: %v", option, err)
		}
		all = append(all, func(r *kgo.Record) bool { return pattern.Match(of(r)) })
	}
	for _, text := range c.values("header") {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, wrongUsage("--header %s is not of the form NAME=VALUE", text)
		}
		all = append(all, func(r *kgo.Record) bool {
			return slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == name && string(h.Value) == value })
		})
	}
	return func(r *kgo.Record) bool {
		return !r.Attrs.IsControl() && !slices.ContainsFunc(all, func(is func(*kgo.Record) bool) bool { return !is(r) })
	}, nil
}

func (k *consumption) printer() (func(*kgo.Record) error, error) {
	if k.IsSet("format") {
		pieces, err := readFormat(k.String("format"))
		return func(r *kgo.Record) error {
			for _, p := range pieces {
				p(k.out, r)
			}
			return nil
		}, err
	}
	format := strings.TrimSuffix(k.String("output"), "-rows") // JSON is by rows anyway
	return func(r *kgo.Record) error {
		if format == "yaml" {
			fmt.Fprintln(k.out, "---")
		}
		return render(k.out, format, rowOf(r), true)
	}, nil
}

// locate finds where each partition is to be read from and to.
func (k *consumption) locate(now time.Time) error {
	if err := k.needTopics([]string{k.topic}); err != nil {
		return err
	}
	topics, err := k.cluster.Topics(k.ctx, []string{k.topic})
	if err != nil {
		return err
	}
	var all []plan.Partition
	for _, p := range topics[0].Partitions {
		if only := k.values("partition"); len(only) == 0 || slices.Contains(only, strconv.Itoa(int(p.ID))) {
			all = append(all, plan.Partition{Topic: k.topic, ID: p.ID})
			k.parts = append(k.parts, &reading{partition: plan.Partition{Topic: k.topic, ID: p.ID}, leader: p.Leader})
		}
	}
	for _, text := range k.values("partition") {
		if !slices.ContainsFunc(all, func(p plan.Partition) bool { return strconv.Itoa(int(p.ID)) == text }) {
			return &cluster.NotFoundError{Kind: "partition", Name: k.topic + "-" + text}
		}
	}
	starts, err := k.offsets(all, cluster.Earliest)
	if err != nil {
		return err
	}
	ends, err := k.offsets(all, cluster.Latest)
	if err != nil {
		return err
	}
	from, err := k.bound(all, cmp.Or(k.String("since"), k.String("from")), now, starts, ends)
	if err != nil {
		return err
	}
	until := ends
	if k.IsSet("until") {
		if until, err = k.bound(all, k.String("until"), now, starts, ends); err != nil {
			return err
		}
	}
	for _, p := range k.parts {
		p.start = starts[p.partition]
		p.at, p.end = max(p.start, from[p.partition]), min(until[p.partition], ends[p.partition])
	}
	return nil
}

// offsets are those of a time, of every partition; where there is nothing as late it is missing.
func (k *consumption) offsets(all []plan.Partition, at int64) (map[plan.Partition]int64, error) {
	found, failed, err := k.cluster.Offsets(k.ctx, all, at)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if failed[p] != nil {
			return nil, fmt.Errorf("partition %v: %w", p, failed[p])
		}
	}
	return found, nil
}

// bound reads oldest, newest, an offset or a time.
func (k *consumption) bound(all []plan.Partition, text string, now time.Time, starts, ends map[plan.Partition]int64) (map[plan.Partition]int64, error) {
	switch text {
	case "oldest":
		return starts, nil
	case "newest":
		return ends, nil
	}
	out := map[plan.Partition]int64{}
	if offset, err := strconv.ParseInt(text, 10, 64); err == nil && offset >= 0 {
		for _, p := range all {
			out[p] = min(offset, ends[p])
		}
		return out, nil
	}
	at, err := readTime(text, now)
	if err != nil {
		return nil, err
	}
	found, err := k.offsets(all, at.UnixMilli())
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if offset, there := found[p]; there {
			out[p] = offset
		} else {
			out[p] = ends[p]
		}
	}
	return out, nil
}

// readTime reads now, a duration before it, or a time.
func readTime(text string, now time.Time) (time.Time, error) {
	if text == "now" {
		return now, nil
	}
	if back, err := time.ParseDuration(text); err == nil && back >= 0 {
		return now.Add(-back), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	at, err := cluster.ParseDateTime(text)
	if err != nil {
		return at, wrongUsage("%q is no offset, no duration such as 10m and no time such as 2006-01-02T15:04:05.000Z", text)
	}
	return at, nil
}

const (
	pieceBytes = 1 << 20
	idlePause  = 300 * time.Millisecond
	mostFaults = 20 // of a partition, one after the other
)

// errEnough ends a reading that has brought what was asked for.
var errEnough = errors.New("enough")

// readOn prints what there is up to the ends and, when it follows, what comes.
func (k *consumption) readOn() error {
	for {
		if err := k.readAll(k.parts, k.keep); err != nil || !k.Bool("follow") {
			return err
		}
		if err := k.out.Flush(); err != nil {
			return err
		}
		if err := k.pause(); err != nil {
			return err
		}
		var all []plan.Partition
		for _, p := range k.parts {
			all = append(all, p.partition)
		}
		ends, _, err := k.cluster.Offsets(k.ctx, all, cluster.Latest)
		if err != nil {
			return err
		}
		for _, p := range k.parts {
			p.end = max(p.end, ends[p.partition]) // a partition without a leader is waited for
		}
	}
}

func (k *consumption) keep(r *kgo.Record) error {
	if !k.wanted(r) {
		return nil
	}
	if err := k.print(r); err != nil {
		return err
	}
	if k.left--; k.left == 0 {
		return errEnough
	}
	return nil
}

func (k *consumption) pause() error {
	select {
	case <-k.ctx.Done():
		return k.ctx.Err()
	case <-time.After(idlePause):
		return nil
	}
}

// readAll reads partitions to their ends, a piece of each in turn.
func (k *consumption) readAll(parts []*reading, keep func(*kgo.Record) error) error {
	open := slices.Clone(parts)
	for len(open) > 0 {
		open = slices.DeleteFunc(open, func(p *reading) bool { return p.at >= p.end })
		for _, p := range open {
			if err := k.piece(p, keep); err != nil {
				return err
			}
		}
	}
	return nil
}

// piece reads a piece of a partition. When its leader changes, the new one is asked; when records were deleted meanwhile, it goes on with the first that is left.
func (k *consumption) piece(p *reading, keep func(*kgo.Record) error) error {
	got, err := k.cluster.Read(k.ctx, p.leader, p.partition, p.at, pieceBytes)
	switch {
	case err == nil:
		p.failed = 0
	case errors.Is(err, kerr.OffsetOutOfRange):
		starts, err := k.offsets([]plan.Partition{p.partition}, cluster.Earliest)
		if err != nil {
			return err
		}
		if starts[p.partition] <= p.at {
			return fmt.Errorf("partition %v ends before offset %d now: records were lost", p.partition, p.at)
		}
		p.at = starts[p.partition]
		return nil
	case kerr.IsRetriable(err) || cluster.IsUnreachable(err):
		if p.failed++; p.failed > mostFaults || k.ctx.Err() != nil {
			return fmt.Errorf("partition %v: %w", p.partition, err)
		}
		if err := k.pause(); err != nil {
			return err
		}
		topics, err := k.cluster.Topics(k.ctx, []string{k.topic})
		if err != nil {
			return err
		}
		for _, now := range topics[0].Partitions {
			if now.ID == p.partition.ID {
				p.leader = now.Leader
			}
		}
		return nil
	default:
		return fmt.Errorf("partition %v: %w", p.partition, err)
	}
	for _, r := range got.Records {
		if r.Offset >= p.end {
			break
		}
		if err := keep(r); err != nil {
			return err
		}
	}
	p.at = got.Next
	return nil
}

// tail prints the last n records that are wanted, of all partitions together. It goes back from the ends, farther each time, since compaction leaves gaps and not every record is wanted.
func (k *consumption) tail(n int) error {
	var last []*kgo.Record
	for _, p := range k.parts {
		first, end := p.at, p.end
		var found []*kgo.Record
		for back := int64(n); ; back *= 4 {
			p.at, found = max(first, end-back), nil
			from := p.at
			if err := k.readAll([]*reading{p}, func(r *kgo.Record) error {
				if k.wanted(r) {
					if found = append(found, r); len(found) > n {
						found = found[1:]
					}
				}
				return nil
			}); err != nil {
				return err
			}
			if len(found) >= n || from <= first {
				break
			}
		}
		last = append(last, found...)
	}
	slices.SortStableFunc(last, func(a, b *kgo.Record) int { return a.Timestamp.Compare(b.Timestamp) })
	for _, r := range last[max(0, len(last)-n):] {
		if err := k.print(r); err != nil {
			return err
		}
	}
	return nil
}
