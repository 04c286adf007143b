package tools

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/admin"
	"barnabas/admin/cluster"
	"barnabas/broker/acl"
	"barnabas/tools/options"
	"barnabas/zkstate"
)

func openACLs(set *options.Set) (aclService, error) {
	if !set.Has("bootstrap-server") {
		return openACLsByZooKeeper(set)
	}
	client, err := adminClient.connect(set)
	if err != nil {
		return nil, err
	}
	return &aclsByBroker{client}, nil
}

// aclsByBroker asks any broker.
type aclsByBroker struct{ client *kgo.Client }

func (s *aclsByBroker) close() { s.client.Close() }

func (s *aclsByBroker) find(f acl.Filter) ([]acl.Binding, error) {
	return cluster.New(s.client).ACLs(context.Background(), f)
}

func (s *aclsByBroker) create(bindings []acl.Binding) error {
	failed, err := cluster.New(s.client).AddACLs(context.Background(), bindings)
	return cmp.Or(append([]error{err}, failed...)...)
}

func (s *aclsByBroker) remove(filters []acl.Filter) error {
	return cluster.New(s.client).RemoveACLs(context.Background(), filters)
}

// aclsByZooKeeper does what a broker's authorizer does.
type aclsByZooKeeper struct {
	zk    *zkstate.Client
	lists *admin.ACLs
}

// aclWork bounds what is done in ZooKeeper for one call.
const aclWork = time.Minute

func openACLsByZooKeeper(set *options.Set) (aclService, error) {
	properties := map[string]string{}
	for _, pair := range set.Values("authorizer-properties") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, &badArgument{"Invalid command line properties: " + pair}
		}
		properties[key] = value
	}
	servers := properties["authorizer.zookeeper.url"]
	if servers == "" {
		servers = properties["zookeeper.connect"]
	}
	class, err := set.Value("authorizer")
	if err != nil {
		return nil, err
	}
	tlsFile, err := set.Value("zk-tls-config-file")
	switch {
	case err != nil:
		return nil, err
	case servers == "":
		return nil, &badArgument{"--authorizer-properties needs zookeeper.connect=host:port"}
	case class != "" && !strings.HasSuffix(class, "AclAuthorizer"):
		return nil, &badArgument{"there is no authorizer " + class + " here; kafka.security.authorizer.AclAuthorizer is the one that keeps access lists in ZooKeeper"}
	}
	zk, err := connectZooKeeper(servers, tlsFile, "authorizer.")
	if err != nil {
		return nil, err
	}
	s := &aclsByZooKeeper{zk, admin.NewACLs(zk, acl.Policy{})}
	ctx, cancel := context.WithTimeout(context.Background(), aclWork)
	defer cancel()
	if err := s.lists.Load(ctx); err != nil {
		zk.Close()
		return nil, err
	}
	return s, nil
}

func (s *aclsByZooKeeper) close() { s.zk.Close() }

func (s *aclsByZooKeeper) find(f acl.Filter) ([]acl.Binding, error) { return s.lists.Find(f), nil }

func (s *aclsByZooKeeper) create(bindings []acl.Binding) error {
	ctx, cancel := context.WithTimeout(context.Background(), aclWork)
	defer cancel()
	return errors.Join(s.lists.Create(ctx, bindings)...)
}

func (s *aclsByZooKeeper) remove(filters []acl.Filter) error {
	ctx, cancel := context.WithTimeout(context.Background(), aclWork)
	defer cancel()
	var errs []error
	for _, deleted := range s.lists.Delete(ctx, filters) {
		for _, b := range deleted {
			errs = append(errs, b.Err)
		}
	}
	return errors.Join(errs...)
}
