package config

// ownKeys are the keys that Apache Kafka does not have, by name. They may stand in the same file as Kafka's; Kafka's tools do not show them.
var ownKeys = []Key{
	{Name: "barnabas.flush.policy", Type: String, Default: new("thin-isr"), Valid: oneOf("kafka", "thin-isr", "always"), Importance: High, Acted: true, Doc: "When a log has to be on the disk before its records count as committed. kafka trusts replication alone. thin-isr flushes what a leader commits while it is the only member of an in-sync set that could be larger, so that the power cut of the last replica standing takes nothing that was acknowledged; a replica that came back from a crash shorter than what it had committed does not lead alone. always flushes before every commit, on leaders and followers."},
}
