package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Kafka's own definitions, dumped from its ConfigDef objects, are the judge of both tables.
func TestTablesHoldEveryKeyOfKafkaWithItsTypeAndDefault(t *testing.T) {
	for _, version := range []string{"2.8.2", "3.9.1"} {
		data, err := os.ReadFile(filepath.Join("testdata", "kafka-"+version+".tsv"))
		require.NoError(t, err)
		rows := 0
		for _, line := range strings.Split(string(data), "\n") {
			f := strings.Split(line, "\t")
			if len(f) < 7 {
				continue
			}
			rows++
			table := Broker
			if f[0] == "topic" {
				table = Topic
			}
			k := table.Lookup(f[1])
			if !assert.NotNil(t, k, "%s: %s", version, f[1]) {
				continue
			}
			assert.Equal(t, f[2], k.Type.String(), f[1])
			if version != "3.9.1" && !k.Retired {
				continue // where the two differ, 3.9.1's default holds
			}
			if f[3] == "<<null>>" {
				assert.Nil(t, k.Default, f[1])
			} else if assert.NotNil(t, k.Default, f[1]) {
				assert.Equal(t, f[3], *k.Default, f[1])
			}
			assert.Equal(t, f[5], strings.ToUpper(k.Importance.String()), f[1])
		}
		assert.Greater(t, rows, 200)
	}
}

func TestEveryDefaultIsValidAndEveryKeyIsExplained(t *testing.T) {
	for _, table := range []Table{Broker, Topic} {
		for _, k := range table.Keys() {
			assert.NotEmpty(t, k.Doc, k.Name)
			if k.Default != nil && k.Type != Password && *k.Default != "" {
				assert.NoError(t, k.Check(*k.Default), k.Name)
			}
			for _, s := range k.Synonyms {
				assert.NotNil(t, Broker.Lookup(s.Name), s.Name)
			}
		}
	}
}

func TestBadValuesAreRefusedInKafkasWords(t *testing.T) {
	for value, want := range map[string]string{
		"retention.ms=abc":                            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
		"retention.ms=-2":                             "Invalid value -2 for configuration retention.ms: Value must be at least -1",
		"segment.bytes=13":                            "Invalid value 13 for configuration segment.bytes: Value must be at least 14",
		"segment.bytes=3000000000":                    "Invalid value 3000000000 for configuration segment.bytes: Not a number of type INT",
		"preallocate=yes":                             "Invalid value yes for configuration preallocate: Expected value to be either true or false",
		"min.cleanable.dirty.ratio=1.5":               "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
		"compression.type=brotli":                     "Invalid value brotli for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
		"cleanup.policy=compact,shred":                "Invalid value shred for configuration cleanup.policy: String must be one of: compact, delete",
		"message.timestamp.type=now":                  "Invalid value now for configuration message.timestamp.type: String must be one of: CreateTime, LogAppendTime",
		"leader.replication.throttled.replicas=0:1,x": "Invalid value [0:1, x] for configuration leader.replication.throttled.replicas: leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
	} {
		name, v, _ := strings.Cut(value, "=")
		assert.EqualError(t, Topic.Lookup(name).Check(v), want)
	}
	for _, value := range []string{"retention.ms=-1", "cleanup.policy=compact, delete", "leader.replication.throttled.replicas=*", "follower.replication.throttled.replicas=", "preallocate=TRUE", "segment.ms= 5 ", "message.format.version=2.8"} {
		name, v, _ := strings.Cut(value, "=")
		assert.NoError(t, Topic.Lookup(name).Check(v), value)
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestPropertiesAndYAMLSayTheSame(t *testing.T) {
	properties, err := Load(write(t, "server.properties", "broker.id=3\n# a comment\nlisteners = PLAINTEXT://127.0.0.1:9093\nlog.dirs=/a,/b\nzookeeper.connect=z1:2181,z2:2181/k\nssl.provider=${env}/x\n"), nil)
	require.NoError(t, err)
	yaml, err := Load(write(t, "server.yaml", "broker:\n  id: 3\nlisteners: PLAINTEXT://127.0.0.1:9093\nlog.dirs: [/a, /b]\nzookeeper:\n  connect: z1:2181,z2:2181/k\nssl.provider: ${env}/x\n"), nil)
	require.NoError(t, err)
	assert.Equal(t, properties, yaml)
	assert.EqualValues(t, 3, properties.Int("broker.id"))
	assert.Equal(t, []string{"/a", "/b"}, properties.LogDirs())
	assert.Equal(t, "z1:2181,z2:2181/k", properties.String("zookeeper.connect"))
	assert.Equal(t, []string{"ssl.provider"}, properties.WithoutEffect())
}

func TestOverridesComeLastAndInOrder(t *testing.T) {
	v, err := Load(write(t, "s.properties", "num.partitions=1\n"), []string{"num.partitions=2", "num.partitions=3", "my.own=x"})
	require.NoError(t, err)
	assert.EqualValues(t, 3, v.Int("num.partitions"))
	assert.Equal(t, []string{"my.own"}, v.Unknown())
	_, err = Load("", []string{"num.partitions"})
	assert.ErrorContains(t, err, "num.partitions")
}

func TestStartIsRefusedWithTheNameOfTheKeyAtFault(t *testing.T) {
	for override, key := range map[string]string{
		"num.partitions=0":                              "num.partitions",
		"broker.id=1001":                                "broker.id",
		"process.roles=broker":                          "process.roles",
		"inter.broker.protocol.version=2.3":             "inter.broker.protocol.version",
		"inter.broker.protocol.version=4.0":             "inter.broker.protocol.version",
		"inter.broker.protocol.version=x":               "inter.broker.protocol.version",
		"log.cleaner.threads=0":                         "log.cleaner.threads",
		"offsets.commit.required.acks=4":                "offsets.commit.required.acks",
		"offsets.topic.compression.codec=5":             "offsets.topic.compression.codec",
		"listeners=PLAINTEXT://h:9,PLAINTEXT://h:10":    "listeners",
		"principal.builder.class=org.example.Builder":   "principal.builder.class",
		"listeners=INSIDE://h:9":                        "listeners",
		"listeners=nonsense":                            "listeners",
		"advertised.listeners=PLAINTEXT://0.0.0.0:9092": "advertised.listeners",
		"inter.broker.listener.name=INSIDE":             "inter.broker.listener.name",
	} {
		_, err := Load("", []string{override})
		assert.ErrorContains(t, err, "for configuration "+key+":", override)
	}
}

func TestEitherOfTwoKeysNamesTheBroker(t *testing.T) {
	for set, want := range map[string]string{"broker.id": "7", "node.id": "7"} {
		v, err := New(map[string]string{set: want})
		require.NoError(t, err)
		assert.Equal(t, want, v.String("broker.id"))
		assert.Equal(t, want, v.String("node.id"))
		assert.Empty(t, v.WithoutEffect())
	}
	v, err := New(nil)
	require.NoError(t, err)
	assert.Equal(t, "-1", v.String("broker.id"), "one is generated")
	_, err = New(map[string]string{"broker.id": "1", "node.id": "2"})
	assert.ErrorContains(t, err, "node.id")
}

func TestListenerPrefixedKeysAreKnown(t *testing.T) {
	v, err := New(map[string]string{"listener.name.inside.max.connections": "5", "listener.name.inside.scram-sha-256.sasl.jaas.config": "x", "listener.name.inside.nonsense": "y"})
	require.NoError(t, err)
	assert.Equal(t, []string{"listener.name.inside.nonsense"}, v.Unknown())
	_, err = New(map[string]string{"listener.name.inside.max.connections": "many"})
	assert.Error(t, err)
}

func TestTopicDefaultsComeFromTheFirstSynonymThatIsSet(t *testing.T) {
	v, err := New(map[string]string{"log.retention.hours": "1", "log.retention.minutes": "2", "message.max.bytes": "77"})
	require.NoError(t, err)
	value, from := v.TopicDefault("retention.ms")
	assert.Equal(t, []string{"120000", "log.retention.minutes"}, []string{value, from})
	value, from = v.TopicDefault("max.message.bytes")
	assert.Equal(t, []string{"77", "message.max.bytes"}, []string{value, from})
	value, from = v.TopicDefault("segment.ms")
	assert.Equal(t, []string{"604800000", ""}, []string{value, from})
	v, err = New(map[string]string{"log.retention.hours": "-1"})
	require.NoError(t, err)
	value, _ = v.TopicDefault("retention.ms")
	assert.Equal(t, "-1", value)
}

func TestProtocolVersionsAreOrderedAndReadWithOrWithoutTheirStep(t *testing.T) {
	for name, want := range map[string]string{"2.8": "2.8-IV1", "2.8.2": "2.8-IV1", "2.7-IV0": "2.7-IV0", "3.9": "3.9-IV0", "0.10.2": "0.10.2-IV0", "0.10.2.2": "0.10.2-IV0"} {
		v, err := ParseProtocolVersion(name)
		require.NoError(t, err)
		assert.Equal(t, want, v.String())
	}
	assert.Less(t, V2_7IV2, V2_8IV0)
	_, err := ParseProtocolVersion("5.0")
	assert.Error(t, err)
}

func TestListenersMayNameHostsOfEveryKind(t *testing.T) {
	l, err := ParseListeners("listeners", "PLAINTEXT://:9092, IN://[::1]:9093,OUT://a-b.c:0", "PLAINTEXT:PLAINTEXT,in:ssl,OUT:SASL_SSL")
	require.NoError(t, err)
	assert.Equal(t, []Listener{{"PLAINTEXT", "", 9092, "PLAINTEXT"}, {"IN", "::1", 9093, "SSL"}, {"OUT", "a-b.c", 0, "SASL_SSL"}}, l)
	assert.Equal(t, "IN://[::1]:9093", l[1].URI())
}

func TestHelpNamesEveryPublicKey(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Broker.WriteHelp(&out))
	for _, k := range Broker.Keys() {
		assert.Equal(t, !k.Internal, strings.Contains("\n"+out.String(), "\n"+k.Name+"  ("), k.Name)
	}
}

func FuzzLoadProperties(f *testing.F) {
	f.Add([]byte("broker.id=1\nlisteners=PLAINTEXT://:9092\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Load(write(t, "f.properties", string(data)), nil)
	})
}

func TestKeysBesideKafkas(t *testing.T) {
	v, err := New(map[string]string{"barnabas.flush.policy": "always"})
	require.NoError(t, err)
	require.Equal(t, "always", v.String("barnabas.flush.policy"))
	require.Empty(t, v.Unknown())
	_, err = New(map[string]string{"barnabas.flush.policy": "never"})
	require.ErrorContains(t, err, "barnabas.flush.policy")
	v, err = New(nil)
	require.NoError(t, err)
	require.Equal(t, "thin-isr", v.String("barnabas.flush.policy"))
	for _, k := range Own.Keys() {
		require.Nil(t, Broker.Lookup(k.Name), "a key of ours must not stand in for one of Kafka's")
		require.Equal(t, ReadOnly, k.Update)
	}
}

func TestWhatIsActedOnIsNotSaidToHaveNoEffect(t *testing.T) {
	v, err := New(map[string]string{"log.message.downconversion.enable": "false", "log.message.format.version": "2.8", "replica.socket.receive.buffer.bytes": "1", "num.io.threads": "9"})
	require.NoError(t, err)
	assert.Equal(t, []string{"num.io.threads"}, v.WithoutEffect())
}
