package config

import (
	"slices"
	"strings"
)

// authorizers are the classes that authorizer.class.name may name: the one that keeps access lists in ZooKeeper, and the name that it had before Kafka 2.4.
var authorizers = []string{"kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer"}

// checkAuthorizer refuses what would leave the cluster less guarded than its configuration says.
func (v *Values) checkAuthorizer() error {
	if class := v.String("authorizer.class.name"); class != "" && !slices.Contains(authorizers, class) {
		return &InvalidError{Name: "authorizer.class.name", Value: class, Reason: "the authorizers that there are here are " + strings.Join(authorizers, " and ") + "; a class of your own cannot be loaded"}
	}
	if elsewhere, set := v.Lookup("authorizer.zookeeper.url"); set && elsewhere != v.String("zookeeper.connect") {
		return &InvalidError{Name: "authorizer.zookeeper.url", Value: elsewhere, Reason: "access lists are kept where zookeeper.connect points"}
	}
	return nil
}
