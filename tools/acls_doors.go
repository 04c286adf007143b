package tools

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
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

func (s *aclsByBroker) find(f acl.Filter) (found []acl.Binding, err error) {
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType, req.ResourceName, req.ResourcePatternType = f.Resource, f.Name, f.Type
	req.Principal, req.Host, req.Operation, req.PermissionType = f.Principal, f.Host, f.Operation, f.Permission
	resp, err := req.RequestWith(context.Background(), s.client)
	if err != nil {
		return nil, err
	}
	if err := answered(resp.ErrorCode, resp.ErrorMessage); err != nil {
		return nil, err
	}
	for _, r := range resp.Resources {
		for _, a := range r.ACLs {
			found = append(found, acl.Binding{
				Pattern: acl.Pattern{Resource: r.ResourceType, Name: r.ResourceName, Type: r.ResourcePatternType},
				Entry:   acl.Entry{Principal: a.Principal, Host: a.Host, Operation: a.Operation, Permission: a.PermissionType},
			})
		}
	}
	return found, nil
}

func (s *aclsByBroker) create(bindings []acl.Binding) error {
	req := kmsg.NewPtrCreateACLsRequest()
	for _, b := range bindings {
		c := kmsg.NewCreateACLsRequestCreation()
		c.ResourceType, c.ResourceName, c.ResourcePatternType = b.Resource, b.Name, b.Type
		c.Principal, c.Host, c.Operation, c.PermissionType = b.Principal, b.Host, b.Operation, b.Permission
		req.Creations = append(req.Creations, c)
	}
	resp, err := req.RequestWith(context.Background(), s.client)
	if err != nil {
		return err
	}
	for _, r := range resp.Results {
		if err := answered(r.ErrorCode, r.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

func (s *aclsByBroker) remove(filters []acl.Filter) error {
	req := kmsg.NewPtrDeleteACLsRequest()
	for _, f := range filters {
		to := kmsg.NewDeleteACLsRequestFilter()
		to.ResourceType, to.ResourceName, to.ResourcePatternType = f.Resource, f.Name, f.Type
		to.Principal, to.Host, to.Operation, to.PermissionType = f.Principal, f.Host, f.Operation, f.Permission
		req.Filters = append(req.Filters, to)
	}
	resp, err := req.RequestWith(context.Background(), s.client)
	if err != nil {
		return err
	}
	for _, r := range resp.Results {
		if err := answered(r.ErrorCode, r.ErrorMessage); err != nil {
			return err
		}
		for _, b := range r.MatchingACLs {
			if err := answered(b.ErrorCode, b.ErrorMessage); err != nil {
				return err
			}
		}
	}
	return nil
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
