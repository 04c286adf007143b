package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"barnabas/admin/cluster"
)

func toTopic(in url.Values) string { return link("/topic", "name", in.Get("topic")) }

func createTopicAction() action {
	return action{path: "/do/create-topic", title: "Create a topic",
		fields: func(_ context.Context, _ *Console, in url.Values) ([]field, error) {
			return []field{
				{Name: "topic", Label: "Name", Value: in.Get("topic"), Kind: "text", Help: "letters, digits, . _ -"},
				{Name: "partitions", Label: "Partitions", Value: in.Get("partitions"), Kind: "number", Help: "empty: the cluster's default"},
				{Name: "factor", Label: "Replication factor", Value: in.Get("factor"), Kind: "number", Help: "empty: the cluster's default"},
				{Name: "settings", Label: "Settings", Value: in.Get("settings"), Kind: "lines", Help: "name=value, one a line; empty: the defaults"},
			}, nil
		},
		preview: func(ctx context.Context, c *Console, in url.Values) (*preview, error) {
			spec, err := topicSpec(in)
			if err != nil {
				return nil, err
			}
			if err := c.Cluster.CreateTopic(ctx, spec, true); err != nil {
				return nil, err
			}
			own, kafka := []string{"topic", "create", spec.Name}, []string{"kafka-topics.sh", "--create", "--topic", spec.Name}
			option := func(words ...string) { own, kafka = append(own, words...), append(kafka, words...) }
			p := &preview{Sentence: "The controller would create " + spec.Name + ".", Heading: []string{"", ""}}
			for _, one := range []struct{ name, label, value string }{{"--partitions", "partitions", in.Get("partitions")}, {"--replication-factor", "replication factor", in.Get("factor")}} {
				if one.value == "" {
					p.Rows = append(p.Rows, []string{one.label, "the cluster's default"})
					continue
				}
				option(one.name, one.value)
				p.Rows = append(p.Rows, []string{one.label, one.value})
			}
			for _, s := range spec.Settings {
				option("--config", s.String())
				p.Rows = append(p.Rows, []string{s.Name, s.Value})
			}
			if spec.ReplicationFactor == 1 {
				p.Warnings = append(p.Warnings, "With one replica the topic cannot be used while its broker is away, and is lost with its disk.")
			}
			p.Commands = c.commands(own, kafka)
			return p, nil
		},
		do: func(ctx context.Context, c *Console, in url.Values) (string, error) {
			spec, err := topicSpec(in)
			if err != nil {
				return "", err
			}
			return "created topic " + spec.Name, c.Cluster.CreateTopic(ctx, spec, false)
		},
		back: func(in url.Values) string {
			if in.Get("step") == "do" {
				return toTopic(in)
			}
			return "/topics"
		},
	}
}

func topicSpec(in url.Values) (cluster.TopicSpec, error) {
	spec := cluster.TopicSpec{Name: strings.TrimSpace(in.Get("topic")), Partitions: -1, ReplicationFactor: -1}
	if spec.Name == "" {
		return spec, errors.New("the topic needs a name")
	}
	if text := in.Get("partitions"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return spec, fmt.Errorf("%q is no number of partitions", text)
		}
		spec.Partitions = int32(n)
	}
	if text := in.Get("factor"); text != "" {
		n, err := strconv.ParseInt(text, 10, 16)
		if err != nil || n < 1 {
			return spec, fmt.Errorf("%q is no replication factor", text)
		}
		spec.ReplicationFactor = int16(n)
	}
	for line := range strings.Lines(in.Get("settings")) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return spec, fmt.Errorf("%q is not of the form name=value", line)
		}
		spec.Settings = append(spec.Settings, cluster.Setting{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	return spec, nil
}

func topicConfigAction() action {
	return action{path: "/do/topic-config", title: "Change a setting",
		fields: func(ctx context.Context, c *Console, in url.Values) ([]field, error) {
			now, err := c.settingNow(ctx, in)
			if err != nil {
				return nil, err
			}
			value := in.Get("value")
			if _, filled := in["value"]; !filled && now.Value != nil {
				value = *now.Value
			}
			return []field{
				fixed("topic", "Topic", in.Get("topic")),
				fixed("setting", "Setting", in.Get("setting")),
				{Name: "value", Label: "Value", Value: value, Kind: "text", Help: now.Doc},
				{Name: "take", Label: "Or", Value: in.Get("take"), Kind: "choice", Choices: []string{"", "take back the topic's own value"}},
			}, nil
		},
		preview: func(ctx context.Context, c *Console, in url.Values) (*preview, error) {
			now, err := c.settingNow(ctx, in)
			if err != nil {
				return nil, err
			}
			set, remove, to := settingChange(in)
			if remove != nil && !now.Own() {
				return nil, errors.New("the topic has no value of its own")
			}
			if err := c.Cluster.AlterTopicConfig(ctx, in.Get("topic"), set, remove, true); err != nil {
				return nil, err
			}
			from := "not set"
			if now.Value != nil {
				from = *now.Value
			}
			change := []string{"--config", in.Get("setting") + "=" + in.Get("value")}
			kafka := []string{"--add-config", in.Get("setting") + "=[" + in.Get("value") + "]"}
			if remove != nil {
				change, kafka = []string{"--delete-config", in.Get("setting")}, []string{"--delete-config", in.Get("setting")}
			}
			return &preview{Sentence: "The brokers would take the change; it holds at once.", Heading: []string{"Setting", "Now", "From", "Then"},
				Rows: [][]string{{in.Get("setting"), from, source(now.Source), to}},
				Commands: c.commands(append([]string{"topic", "alter", in.Get("topic")}, change...),
					append([]string{"kafka-configs.sh", "--alter", "--entity-type", "topics", "--entity-name", in.Get("topic")}, kafka...))}, nil
		},
		do: func(ctx context.Context, c *Console, in url.Values) (string, error) {
			set, remove, to := settingChange(in)
			return fmt.Sprintf("%s of topic %s: %s", in.Get("setting"), in.Get("topic"), to), c.Cluster.AlterTopicConfig(ctx, in.Get("topic"), set, remove, false)
		},
		back: func(in url.Values) string { return link("/topic/config", "name", in.Get("topic")) },
	}
}

func settingChange(in url.Values) (set []cluster.Setting, remove []string, to string) {
	if in.Get("take") != "" {
		return nil, []string{in.Get("setting")}, "what holds for all topics"
	}
	return []cluster.Setting{{Name: in.Get("setting"), Value: in.Get("value")}}, nil, in.Get("value")
}

func (c *Console) settingNow(ctx context.Context, in url.Values) (cluster.DescribedSetting, error) {
	settings, err := c.Cluster.TopicConfig(ctx, in.Get("topic"))
	if err != nil {
		return cluster.DescribedSetting{}, err
	}
	at := slices.IndexFunc(settings, func(s cluster.DescribedSetting) bool { return s.Name == in.Get("setting") })
	if at < 0 {
		return cluster.DescribedSetting{}, &cluster.NotFoundError{Kind: "setting", Name: in.Get("setting")}
	}
	return settings[at], nil
}

func addPartitionsAction() action {
	return action{path: "/do/add-partitions", title: "Add partitions",
		fields: func(_ context.Context, _ *Console, in url.Values) ([]field, error) {
			return []field{fixed("topic", "Topic", in.Get("topic")), {Name: "count", Label: "Partitions in all", Value: in.Get("count"), Kind: "number"}}, nil
		},
		preview: func(ctx context.Context, c *Console, in url.Values) (*preview, error) {
			e, err := enlargement(in)
			if err != nil {
				return nil, err
			}
			_, t, err := topicOf(ctx, c, question{values: url.Values{"name": {e.Topic}}}, time.Second)
			if err != nil {
				return nil, err
			}
			if err := c.Cluster.Enlarge(ctx, []cluster.Enlargement{e}, true); err != nil {
				return nil, err
			}
			count := in.Get("count")
			return &preview{Sentence: "The controller would add partitions.", Heading: []string{"Topic", "Partitions now", "Then"}, Rows: [][]string{{e.Topic, strconv.Itoa(len(t.Partitions)), count}},
				Warnings: []string{"Records with a key go to other partitions from then on: whoever relies on the order of a key's records, or keeps state by partition, is hit.", "Partitions cannot be taken away again."},
				Commands: c.commands([]string{"topic", "alter", e.Topic, "--partitions", count}, []string{"kafka-topics.sh", "--alter", "--topic", e.Topic, "--partitions", count})}, nil
		},
		do: func(ctx context.Context, c *Console, in url.Values) (string, error) {
			e, err := enlargement(in)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("topic %s has %d partitions now", e.Topic, e.Count), c.Cluster.Enlarge(ctx, []cluster.Enlargement{e}, false)
		},
		back: toTopic,
	}
}

func enlargement(in url.Values) (cluster.Enlargement, error) {
	n, err := strconv.ParseInt(in.Get("count"), 10, 32)
	if err != nil || n < 1 {
		return cluster.Enlargement{}, fmt.Errorf("%q is no number of partitions", in.Get("count"))
	}
	return cluster.Enlargement{Topic: in.Get("topic"), Count: int32(n)}, nil
}

func deleteTopicAction() action {
	return action{path: "/do/delete-topic", title: "Delete a topic", danger: true,
		fields: func(_ context.Context, _ *Console, in url.Values) ([]field, error) {
			return []field{fixed("topic", "Topic", in.Get("topic"))}, nil
		},
		preview: func(ctx context.Context, c *Console, in url.Values) (*preview, error) {
			s, t, err := topicOf(ctx, c, question{values: url.Values{"name": {in.Get("topic")}}}, time.Second)
			if err != nil {
				return nil, err
			}
			one := *s
			one.Topics = []cluster.Topic{t}
			row := topicRows(&one)[0]
			p := &preview{Sentence: fmt.Sprintf("%s would be deleted with all its records, on all brokers. That cannot be undone.", t.Name), Type: t.Name, Heading: []string{"", ""},
				Rows:     [][]string{{"partitions", strconv.Itoa(row.Partitions)}, {"size, all replicas", sizeText(row.Size)}},
				Commands: c.commands([]string{"topic", "delete", t.Name}, []string{"kafka-topics.sh", "--delete", "--topic", t.Name})}
			if t.Internal {
				p.Warnings = append(p.Warnings, "This is a topic of the coordinators: all groups' offsets or all transactions are lost with it.")
			}
			groups, err := c.allGroups(ctx, time.Second)
			if err != nil {
				p.Warnings = append(p.Warnings, "Which groups read it is not known: "+err.Error())
				return p, nil
			}
			for _, g := range groups.listed {
				if slices.ContainsFunc(groups.partitions[g.Name], func(p cluster.GroupPartition) bool { return p.Partition.Topic == t.Name }) {
					p.Warnings = append(p.Warnings, fmt.Sprintf("Group %s (%s) reads it.", g.Name, groups.stateOf(g)))
				}
			}
			return p, nil
		},
		do: func(ctx context.Context, c *Console, in url.Values) (string, error) {
			return "deleted topic " + in.Get("topic"), c.Cluster.DeleteTopics(ctx, []string{in.Get("topic")})
		},
		back: func(in url.Values) string {
			if in.Get("step") == "do" {
				return "/topics"
			}
			return toTopic(in)
		},
	}
}

func sizeText(n int64) string {
	if n < 0 {
		return "not known"
	}
	return cluster.ByteCount(n)
}
