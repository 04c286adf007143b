package admin_test

import (
	"errors"
	"slices"
	"time"

	. "barnabas/admin"
)

func asError[T error](err error, target *T) bool { return errors.As(err, target) }

func sortedLines(lines []string) []string {
	slices.Sort(lines)
	return lines
}

// after delays an exchange with a recorded broker until the ones before have reached it.
func after(d time.Duration, x exchange) exchange {
	x.wait = d
	return x
}

func configExchanges() []exchange {
	topic := func(name string) Resource { return Resource{ResourceTopic, name} }
	broker := func(name string) Resource { return Resource{ResourceBroker, name} }
	e := func(name, value string) ConfigEntry { return ConfigEntry{name, &value} }
	set := func(name, value string) ConfigOp { return ConfigOp{name, OpSet, &value} }
	del := func(name string) ConfigOp { return ConfigOp{name, OpDelete, nil} }
	add := func(name, value string) ConfigOp { return ConfigOp{name, OpAppend, &value} }
	sub := func(name, value string) ConfigOp { return ConfigOp{name, OpSubtract, &value} }
	describeT := describe("describe the changed topic", topic("configured"), true, "cleanup.policy", "retention.ms", "segment.bytes", "leader.replication.throttled.replicas")
	return []exchange{
		alter("alter", false, topic("configured"), e("segment.bytes", "1048576")), after(settle, describeT),
		edit("set", false, topic("configured"), set("retention.ms", "1000")), after(settle, describeT),
		edit("set the default", false, topic("configured"), set("cleanup.policy", "delete")),
		edit("append", false, topic("configured"), add("cleanup.policy", "compact")), after(settle, describeT),
		edit("subtract", false, topic("configured"), sub("cleanup.policy", "delete")),
		edit("append to the default", false, topic("configured"), add("leader.replication.throttled.replicas", "0:1,1:1")), after(settle, describeT),
		edit("subtract from the default", false, topic("configured"), sub("follower.replication.throttled.replicas", "0:1")),
		edit("append to what is no list", false, topic("configured"), add("retention.ms", "1")),
		edit("subtract from what is no list", false, topic("configured"), sub("retention.ms", "1")),
		edit("delete", false, topic("configured"), del("retention.ms")),
		edit("delete what is not set", false, topic("configured"), del("flush.ms")),
		edit("the same key twice", false, topic("configured"), set("retention.ms", "1"), set("retention.ms", "2")),
		edit("null value", false, topic("configured"), ConfigOp{"retention.ms", OpSet, nil}),
		edit("unknown key", false, topic("configured"), set("foo", "bar")),
		edit("bad value", false, topic("configured"), set("retention.ms", "abc")),
		edit("validate only", true, topic("configured"), set("retention.ms", "5")), after(settle, describeT),
		edit("missing topic", false, topic("missing"), set("retention.ms", "5")),
		edit("missing topic with an unknown key", false, topic("missing"), set("foo", "5")),
		edit("default topic", false, topic(""), set("retention.ms", "5")),
		edit("compaction lags", false, topic("configured"), set("min.compaction.lag.ms", "10"), set("max.compaction.lag.ms", "5")),
		edit("tiered storage", false, topic("configured"), set("remote.storage.enable", "true")),
		alter("alter a missing topic", false, topic("missing"), e("retention.ms", "5")),
		alter("alter with a bad value", false, topic("configured"), e("retention.ms", "abc")),
		alter("alter with an unknown key", false, topic("configured"), e("foo", "1")),
		alter("alter with a null value", false, topic("configured"), ConfigEntry{"retention.ms", nil}),
		alter("alter with the same key twice", false, topic("configured"), e("retention.ms", "1"), e("retention.ms", "2")),
		alter("alter the default topic", false, topic(""), e("retention.ms", "5")),
		alter("alter of another type", false, Resource{9, "x"}, e("retention.ms", "5")),
		edit("edit of another type", false, Resource{9, "x"}, set("retention.ms", "5")),

		edit("read-only broker key", false, broker("1"), set("log.dirs", "/x")),
		edit("two read-only broker keys", false, broker("1"), set("log.dirs", "/x"), set("broker.id", "5")),
		edit("security key without a listener", false, broker("1"), set("ssl.keystore.location", "/x")),
		edit("per-broker key as a default", false, broker(""), set("listener.name.plaintext.ssl.keystore.location", "/x")),
		edit("bad broker value", false, broker("1"), set("log.cleaner.threads", "abc")),
		edit("broker value out of range", false, broker("1"), set("log.cleaner.io.max.bytes.per.second", "x")),
		edit("another broker", false, broker("2"), set("log.cleaner.threads", "2")),
		edit("no number", false, broker("x"), set("log.cleaner.threads", "2")),
		edit("broker key", false, broker("1"), set("log.cleaner.threads", "2")),
		edit("default broker key", false, broker(""), set("message.max.bytes", "2000000"), set("leader.replication.throttled.rate", "1000")),
		edit("negative quota", false, broker("1"), set("follower.replication.throttled.rate", "-1")),
		edit("unknown broker key", false, broker("1"), set("my.plugin.key", "2")),
		alter("alter a read-only broker key", false, broker("1"), e("log.dirs", "/x")),
		alter("alter a broker key badly", false, broker("1"), e("log.cleaner.threads", "abc")),

		after(settle, describe("describe the topic", topic("configured"), true)),
		describe("describe a topic without synonyms", topic("t"), false, "retention.ms", "max.message.bytes"),
		describe("describe an unknown key", topic("t"), true, "foo"),
		describe("describe a missing topic", topic("missing"), true),
		describe("describe a bad name", topic("a/b"), true),
		describe("describe keys of the broker", broker("1"), true, "log.cleaner.threads", "message.max.bytes", "log.retention.ms", "log.retention.hours", "num.io.threads",
			"leader.replication.throttled.rate", "my.plugin.key", "zookeeper.connection.timeout.ms", "ssl.keystore.password", "log.flush.interval.ms", "compression.type", "min.insync.replicas"),
		describe("describe the default broker", broker(""), true),
		describe("describe another broker", broker("2"), true),
		describe("describe no number", broker("x"), true),
	}
}
