// Package config knows every configuration key of Apache Kafka 2.8 and 3.9 in ZooKeeper mode: one table of broker keys and one of
// topic keys, each with its type, default, valid values, meaning, and where it may change.
//
// Nobody stores the whole configuration. [Load] reads and checks the files, and each part of a broker then takes its own small struct
// from the typed getters of [Values].
package config
