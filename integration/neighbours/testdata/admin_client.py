"""Calls librdkafka's admin client, one call after the other, and prints what each is answered: confluent-kafka. Topics orders and payments are there, and the groups billing, audit and live."""
import json
import sys
import time

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, ElectionType, IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (AclBinding, AclBindingFilter, AclOperation, AclPermissionType, AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, OffsetSpec,
                                   ResourcePatternType, ResourceType, ScramCredentialInfo, ScramMechanism, UserScramCredentialDeletion, UserScramCredentialUpsertion)

admin = AdminClient({"bootstrap.servers": sys.argv[1]})


def plain(x):
    """plain is x in types of JSON; errors are told by name and words."""
    if isinstance(x, KafkaException):
        return {"error": x.args[0].name(), "text": x.args[0].str()}
    if isinstance(x, (str, int, float, bool, type(None))):
        return x
    if isinstance(x, dict):
        return {str(plain(k)): plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, (set, frozenset)):
        return sorted(plain(v) for v in x)
    if isinstance(x, TopicPartition):
        return f"{x.topic}-{x.partition}@{x.offset} {x.metadata or ''} {plain(KafkaException(x.error)) if x.error else ''}"
    if isinstance(x, ConfigEntry):
        return [x.value, x.source if isinstance(x.source, int) else x.source.name, x.is_read_only, x.is_default, x.is_sensitive, [[s.name, s.value, str(s.source)] for s in x.synonyms.values()]]
    if isinstance(x, ConfigResource):
        return f"{x.restype.name} {x.name}"
    if hasattr(x, "name") and hasattr(x, "value"):
        return x.name
    if hasattr(x, "__dict__"):
        return {k: plain(v) for k, v in vars(x).items()}
    return str(x)


def told(future):
    try:
        return plain(future.result(timeout=120))
    except KafkaException as e:
        return plain(e)


def call(name, asked):
    """call prints the answer to one call: of a future, or of one for each thing that was asked for."""
    try:
        answered = asked()
        said = {str(plain(k)): told(f) for k, f in answered.items()} if isinstance(answered, dict) else told(answered)
    except (KafkaException, ValueError, TypeError) as e:
        said = plain(e) if isinstance(e, KafkaException) else str(e)
    print(json.dumps({"call": name, "answer": said}, sort_keys=True), flush=True)


def topic(name, *entries):
    return ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[ConfigEntry(n, v, incremental_operation=op) for n, v, op in entries])


def broker(name, *entries):
    return ConfigResource(ConfigResource.Type.BROKER, name, incremental_configs=[ConfigEntry(n, v, incremental_operation=op) for n, v, op in entries])


SET, DELETE, APPEND, SUBTRACT = AlterConfigOpType.SET, AlterConfigOpType.DELETE, AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT


def described(resource, only=None):
    """described is a call for settings whose answer keeps those of some names."""
    def ask():
        return {r: Filtered(f, only) for r, f in admin.describe_configs([resource]).items()}
    return ask


class Filtered:
    def __init__(self, future, only):
        self.future, self.only = future, only

    def result(self, timeout=None):
        return {k: v for k, v in self.future.result(timeout=timeout).items() if self.only is None or k in self.only}


call("the cluster", lambda: admin.describe_cluster(include_authorized_operations=True))
call("topics", lambda: admin.describe_topics(TopicCollection(["orders", "payments", "nowhere", "not/a/name"]), include_authorized_operations=True))
seen = admin.list_topics(timeout=60)
print(json.dumps({"call": "metadata", "answer": [sorted((b.id, b.host, b.port) for b in seen.brokers.values()), seen.controller_id,
                                                 [[t.topic, [[p.id, p.leader, p.replicas, sorted(p.isrs)] for p in t.partitions.values()]] for n, t in sorted(seen.topics.items()) if n in ("orders", "payments")]]}))

call("making a topic", lambda: admin.create_topics([NewTopic("admin-a", 2, replica_assignment=[[1, 2], [2, 3]], config={"retention.ms": "1000000", "cleanup.policy": "compact,delete"})], operation_timeout=60))
for impossible in (NewTopic("orders", 1, 1), NewTopic("admin-far", 1, 4), NewTopic("admin-none", 0, 1), NewTopic("not/a/name", 1, 1), NewTopic("admin-odd", 1, 1, config={"retention.ms": "soon"}),
                   NewTopic("admin-unknown", 1, 1, config={"no.such.key": "1"})):
    call("making a topic that cannot be: " + impossible.topic, lambda: admin.create_topics([impossible], request_timeout=10))
call("making a topic, only to see", lambda: admin.create_topics([NewTopic("admin-dry", 2, 3)], validate_only=True))
for _ in range(600):  # librdkafka asks a broker of its choice, which may not have heard yet
    if "admin-a" in admin.list_topics(timeout=60).topics:
        break
    time.sleep(0.1)
call("more partitions", lambda: admin.create_partitions([NewPartitions("admin-a", 3, [[3, 1]])], operation_timeout=60))
call("fewer partitions", lambda: admin.create_partitions([NewPartitions("admin-a", 1)]))
call("as many partitions", lambda: admin.create_partitions([NewPartitions("admin-a", 3)]))
call("partitions of nothing", lambda: admin.create_partitions([NewPartitions("nowhere", 3)]))
call("partitions on a broker that is not there", lambda: admin.create_partitions([NewPartitions("admin-a", 4, [[9, 1]])]))
call("partitions, only to see", lambda: admin.create_partitions([NewPartitions("orders", 8)], validate_only=True))

call("settings of a topic", described(topic("admin-a")))
call("settings of payments", described(topic("payments")))
call("settings of a topic that is not there", described(topic("nowhere")))
some = ("log.retention.ms", "log.retention.hours", "num.io.threads", "broker.rack", "default.replication.factor", "message.max.bytes", "log.cleaner.threads", "ssl.keystore.password", "inter.broker.protocol.version",
        "log.message.format.version", "min.insync.replicas", "num.partitions", "zookeeper.session.timeout.ms", "advertised.listeners", "listeners", "broker.id", "offsets.topic.num.partitions")
call("settings of a broker", described(broker("2"), some))
call("changes of a topic's settings", lambda: admin.incremental_alter_configs([topic("admin-a", ("retention.ms", None, DELETE), ("cleanup.policy", "delete", SUBTRACT), ("max.message.bytes", "2000000", SET))]))
call("an addition to a setting", lambda: admin.incremental_alter_configs([topic("admin-a", ("cleanup.policy", "delete", APPEND), ("leader.replication.throttled.replicas", "0:1,1:2", APPEND))]))
call("its settings then", described(topic("admin-a"), ("retention.ms", "cleanup.policy", "max.message.bytes", "leader.replication.throttled.replicas")))
call("a setting of a wrong value", lambda: admin.incremental_alter_configs([topic("admin-a", ("retention.ms", "soon", SET))]))
call("a setting that is unknown", lambda: admin.incremental_alter_configs([topic("admin-a", ("no.such.key", "1", SET))]))
call("an addition to what is no list", lambda: admin.incremental_alter_configs([topic("admin-a", ("retention.ms", "1", APPEND))]))
call("settings of nothing", lambda: admin.incremental_alter_configs([topic("nowhere", ("retention.ms", "1", SET))]))
call("a change of settings, only to see", lambda: admin.incremental_alter_configs([topic("admin-a", ("retention.ms", "5", SET))], validate_only=True))
call("a change of a broker's settings that is too large", lambda: admin.incremental_alter_configs([broker("2", ("log.cleaner.threads", "9", SET))]))
call("a change of a broker's settings", lambda: admin.incremental_alter_configs([broker("2", ("log.cleaner.threads", "2", SET))]))
for key, value in (("num.io.threads", "17"), ("num.io.threads", "3"), ("num.network.threads", "7"), ("num.replica.fetchers", "3"), ("num.recovery.threads.per.data.dir", "3"), ("background.threads", "21"),
                   ("background.threads", "4"), ("num.io.threads", "0")):
    call(f"{key}={value}", lambda: admin.incremental_alter_configs([broker("2", (key, value, SET))]))
call("one that needs a restart", lambda: admin.incremental_alter_configs([broker("2", ("broker.rack", "z", SET))]))
for _ in range(600):
    if list(admin.describe_configs([broker("2")]).values())[0].result(timeout=60)["log.cleaner.threads"].value == "2":
        break
    time.sleep(0.1)
call("the broker's settings then", described(broker("2"), ("log.cleaner.threads",)))
call("and back", lambda: admin.incremental_alter_configs([broker("2", ("log.cleaner.threads", None, DELETE))]))
call("all settings of a topic at once", lambda: admin.alter_configs([ConfigResource(ConfigResource.Type.TOPIC, "admin-a", set_config={"retention.ms": "7000"})]))
call("its settings then", described(topic("admin-a"), ("retention.ms", "cleanup.policy", "max.message.bytes")))

at = {"earliest": OffsetSpec.earliest(), "latest": OffsetSpec.latest(), "of the newest": OffsetSpec.max_timestamp(), "of a time": OffsetSpec.for_timestamp(1577836804500), "of the future": OffsetSpec.for_timestamp(4000000000000)}
for name, spec in at.items():
    call("offsets " + name, lambda: admin.list_offsets({TopicPartition("orders", 0): spec, TopicPartition("payments", 1): spec}, isolation_level=IsolationLevel.READ_COMMITTED))

named = ("billing", "audit", "live")


class Groups:
    def __init__(self, future):
        self.future = future

    def result(self, timeout=None):
        r = self.future.result(timeout=timeout)
        return [sorted([g.group_id, g.is_simple_consumer_group, g.state.name, g.type.name] for g in r.valid if g.group_id in named), [plain(e) for e in r.errors]]


call("groups", lambda: Groups(admin.list_consumer_groups()))
call("groups that are stable", lambda: Groups(admin.list_consumer_groups(states={ConsumerGroupState.STABLE})))
call("descriptions of groups", lambda: admin.describe_consumer_groups(["billing", "live", "nobodys"], include_authorized_operations=True))
call("what groups have committed", lambda: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("audit")], require_stable=True))
call("what they have committed of some", lambda: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("audit", [TopicPartition("orders", 1), TopicPartition("orders", 77), TopicPartition("payments", 0)])]))
call("what nobody has committed", lambda: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("nobodys")]))
call("offsets for a new group", lambda: admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("admin-group", [TopicPartition("orders", 0, 3), TopicPartition("orders", 1, 4, metadata="note")])]))
call("offsets for a group with a member", lambda: admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("live", [TopicPartition("payments", 0, 3)])]))
call("offsets of nothing", lambda: admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("admin-group", [TopicPartition("nowhere", 0, 3)])]))
call("what the new group has then", lambda: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("admin-group")]))
call("groups to delete", lambda: admin.delete_consumer_groups(["admin-group", "live", "nobodys"]))

call("records to delete", lambda: admin.delete_records([TopicPartition("admin-a", 0, 0), TopicPartition("orders", 99, 1)]))
call("records to delete beyond the end", lambda: admin.delete_records([TopicPartition("admin-a", 0, 5)]))
call("preferred leaders", lambda: admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("orders", 0), TopicPartition("orders", 99), TopicPartition("nowhere", 0)]))
call("leaders of any kind", lambda: admin.elect_leaders(ElectionType.UNCLEAN, [TopicPartition("orders", 1)]))

call("SCRAM users", lambda: admin.describe_user_scram_credentials(["nobody"]))
call("a SCRAM user", lambda: admin.alter_user_scram_credentials([UserScramCredentialUpsertion("admin-user", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192), b"password", b"salt"),
                                                                  UserScramCredentialUpsertion("admin-user", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 10000), b"password")]))
call("a SCRAM user who guesses quickly", lambda: admin.alter_user_scram_credentials([UserScramCredentialUpsertion("admin-quick", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 10), b"password")]))
for _ in range(600):
    try:
        if len(admin.describe_user_scram_credentials(["admin-user"])["admin-user"].result(timeout=60).scram_credential_infos) == 2:
            break
    except KafkaException:
        pass
    time.sleep(0.1)
call("the SCRAM user then", lambda: admin.describe_user_scram_credentials(["admin-user", "nobody"]))
call("the end of a SCRAM user", lambda: admin.alter_user_scram_credentials([UserScramCredentialDeletion("admin-user", ScramMechanism.SCRAM_SHA_256), UserScramCredentialDeletion("nobody", ScramMechanism.SCRAM_SHA_256)]))
call("and of the rest", lambda: admin.alter_user_scram_credentials([UserScramCredentialDeletion("admin-user", ScramMechanism.SCRAM_SHA_512)]))

acl = (ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW)
call("access lists without an authorizer", lambda: admin.describe_acls(AclBindingFilter(*acl)))
call("a new one", lambda: admin.create_acls([AclBinding(*acl)]))
call("one less", lambda: admin.delete_acls([AclBindingFilter(*acl)]))

call("the end of a topic", lambda: admin.delete_topics(["admin-a"], operation_timeout=60))
call("the end of nothing", lambda: admin.delete_topics(["nowhere"]))
