// Package native is the tools' own face: barnabas topic, group, broker list and drain, plan, reassign, consume, produce, config, acl, quota, user, elect, disk, top, health, doctor, zk, log and completion. Where Kafka's commands keep Kafka's lines and exit codes, these give tables for people and JSON or
// YAML for programs, say before they act what they would do (--dry-run), and end with an exit code that can be trusted. They decide nothing: that is for admin/cluster, admin/plan and admin/health, which
// Kafka's commands call too.
//
// What -o json and -o yaml print is one document with a version, whose fields keep their names and meaning as long as the version stays; what is not known is null.
package native
