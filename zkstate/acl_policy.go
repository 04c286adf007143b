package zkstate

import (
	"strings"

	"github.com/go-zookeeper/zk"
)

// Which ZooKeeper ACL a node is made with. As in Kafka, with zookeeper.set.acl everybody may read and only the
// creator's identity may write, except that nobody else may read what holds secrets, and the old consumers' directory
// stays open.

// SecureRootPaths are the roots that zookeeper-security-migration walks.
var SecureRootPaths = []string{"/admin", "/brokers", "/cluster", "/config", ControllerPath, ControllerEpochPath,
	ISRChangeNotificationPath, ProducerIDBlockPath, LogDirEventNotificationPath, DelegationTokenPath, "/kafka-acl-extended",
	MigrationPath, FeaturePath, "/kafka-acl", "/kafka-acl-changes", "/kafka-acl-extended/prefixed", "/kafka-acl-extended-changes"}

var sensitiveRoots = []string{"/config/users", "/config/brokers", DelegationTokensPath}

// SensitivePath tells whether a node may hold secrets.
func SensitivePath(path string) bool {
	for _, root := range sensitiveRoots {
		if strings.HasPrefix(path, root) {
			return true
		}
	}
	return false
}

// DefaultACL is the ACL that Kafka gives a node.
func DefaultACL(secure bool, path string) []ACL {
	if !secure || path == ConsumersPath {
		return []ACL{{Perms: PermAll, Scheme: "world", ID: "anyone"}}
	}
	acl := []ACL{{Perms: PermAll, Scheme: "auth", ID: ""}}
	if !SensitivePath(path) {
		acl = append(acl, ACL{Perms: PermRead, Scheme: "world", ID: "anyone"})
	}
	return acl
}

func (c *Client) aclFor(op Op) []zk.ACL {
	acl := op.ACL
	if acl == nil {
		acl = DefaultACL(c.cfg.SecureACLs, op.Path)
	}
	out := make([]zk.ACL, len(acl))
	for i, a := range acl {
		out[i] = zk.ACL{Perms: a.Perms, Scheme: a.Scheme, ID: a.ID}
	}
	return out
}
