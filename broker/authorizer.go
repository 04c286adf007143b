package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"

	"barnabas/admin"
	"barnabas/broker/acl"
	"barnabas/broker/api"
	"barnabas/config"
	"barnabas/zkstate"
)

// authorizer decides by the access lists in ZooKeeper, as AclAuthorizer does, and follows their changes.
type authorizer struct {
	*admin.ACLs
	zk  *zkstate.Client
	log *logrus.Entry
}

var _ api.Authorizer = (*authorizer)(nil)

// newAuthorizer reads every access list; nil where none is configured.
func newAuthorizer(ctx context.Context, zk *zkstate.Client, v *config.Values, log *logrus.Entry) (*authorizer, error) {
	if v.String("authorizer.class.name") == "" {
		return nil, nil
	}
	superUsers, err := acl.ParseSuperUsers(v.String("super.users"))
	if err != nil {
		return nil, fmt.Errorf("super.users: %w", err)
	}
	policy := acl.Policy{SuperUsers: superUsers, AllowUnlisted: v.Bool("allow.everyone.if.no.acl.found")}
	a := &authorizer{ACLs: admin.NewACLs(zk, policy), zk: zk, log: log}
	if err := zk.ThroughSessions(ctx, "reading access lists", func() error { return a.Load(ctx) }); err != nil {
		return nil, err
	}
	return a, nil
}

// follow reads what notifications tell of, and everything in each new session, until ctx ends.
func (a *authorizer) follow(ctx context.Context, events <-chan zkstate.Event) {
	literal, prefixed := newChanges(a.zk, zkstate.ACLChangesPath), newChanges(a.zk, zkstate.ExtendedACLChangesPath)
	a.startAgain(ctx, literal, prefixed)
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-events:
			switch {
			case !open:
				return
			case e.Kind == zkstate.SessionStarted:
				a.startAgain(ctx, literal, prefixed)
			case e.Path == literal.dir:
				a.catchUp(ctx, literal, zkstate.DecodeACLChange)
			case e.Path == prefixed.dir:
				a.catchUp(ctx, prefixed, zkstate.DecodeExtendedACLChange)
			}
		}
	}
}

// startAgain leaves the watches before it reads everything, so that no change falls between.
func (a *authorizer) startAgain(ctx context.Context, lists ...*changes) {
	var errs []error
	for _, c := range lists {
		_, err := c.unseen(ctx)
		errs = append(errs, err)
	}
	if err := errors.Join(append(errs, a.Load(ctx))...); err != nil && ctx.Err() == nil {
		a.log.WithError(err).Error("reading access lists; those of before hold until a new session reads them again")
	}
}

func (a *authorizer) catchUp(ctx context.Context, c *changes, decode func([]byte) (zkstate.Resource, error)) {
	news, err := c.unseen(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.WithError(err).Error("following changes of access lists; a new session will read them again")
		}
		return
	}
	told := map[zkstate.Resource]bool{}
	for _, data := range news {
		r, err := decode(data)
		if err != nil {
			a.log.WithError(err).Errorf("a change of access lists cannot be read and is ignored: %q", data)
			continue
		}
		if told[r] {
			continue
		}
		told[r] = true
		if err := a.Reread(ctx, r); err != nil && ctx.Err() == nil {
			a.log.WithError(err).Errorf("reading the access list of %s; the one of before holds", r.Path())
			continue
		}
		a.log.Infof("the access list of %s changed", r.Path())
	}
}
