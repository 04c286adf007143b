package config

// ownKeys are the keys that are not in Apache Kafka's table, by name: ours, and those that only its authorizer reads. They may stand in the same file as Kafka's; Kafka's tools do not show them.
var ownKeys = []Key{
	{Name: "allow.everyone.if.no.acl.found", Type: Boolean, Default: new("false"), Importance: Medium, Acted: true, Doc: "With an authorizer: whether a resource that no access list concerns is open to everybody."},
	{Name: "barnabas.flush.policy", Type: String, Default: new("thin-isr"), Valid: oneOf("kafka", "thin-isr", "always"), Importance: High, Acted: true, Doc: "When a log has to be on the disk before its records count as committed. kafka trusts replication alone. thin-isr flushes what a leader commits while it is the only member of an in-sync set that could be larger, so that the power cut of the last replica standing takes nothing that was acknowledged; a replica that came back from a crash shorter than what it had committed does not lead alone. always flushes before every commit, on leaders and followers."},
	{Name: "barnabas.metrics.listener", Type: String, Default: new(""), Valid: hostAndPort, Importance: Medium, Acted: true, Doc: "Address, as host:port, at which /metrics is served over HTTP for Prometheus, under the names that the JMX exporter gives Kafka's. Nobody is asked who they are there. Empty: nowhere."},
	{Name: "super.users", Type: String, Default: new(""), Importance: Medium, Acted: true, Doc: "With an authorizer: principals that may do everything, as Type:name, separated by semicolons since names may hold commas."},
}
