package cluster

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
)

// Users are those of the names given that have SCRAM credentials (KIP-554), or all that have any, by name.
func (c *Cluster) Users(ctx context.Context, names ...string) ([]admin.ScramDescription, error) {
	req := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	for _, name := range names {
		u := kmsg.NewDescribeUserSCRAMCredentialsRequestUser()
		u.Name = name
		req.Users = append(req.Users, u)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return nil, err
	}
	if err := Answered(resp.ErrorCode, resp.ErrorMessage); err != nil {
		return nil, err
	}
	var users []admin.ScramDescription
	for _, r := range resp.Results {
		if r.ErrorCode == kerr.ResourceNotFound.Code {
			continue
		}
		u := admin.ScramDescription{User: r.User, Err: Answered(r.ErrorCode, r.ErrorMessage)}
		for _, info := range r.CredentialInfos {
			u.Credentials = append(u.Credentials, admin.ScramInfo{Mechanism: admin.ScramMechanism(info.Mechanism), Iterations: info.Iterations})
		}
		users = append(users, u)
	}
	slices.SortFunc(users, func(a, b admin.ScramDescription) int { return cmp.Compare(a.User, b.User) })
	return users, nil
}

// NewPassword is what a user is to have as the credential of a mechanism.
type NewPassword struct {
	admin.ScramInfo
	Password string
}

// AlterUser sets credentials of a user and takes others back, all or none. Brokers are sent salted passwords: they never see the password.
func (c *Cluster) AlterUser(ctx context.Context, name string, set []NewPassword, remove []admin.ScramMechanism) error {
	req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	for _, m := range remove {
		d := kmsg.NewAlterUserSCRAMCredentialsRequestDeletion()
		d.Name, d.Mechanism = name, int8(m)
		req.Deletions = append(req.Deletions, d)
	}
	for _, one := range set {
		u := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
		u.Name, u.Mechanism, u.Iterations, u.Salt = name, int8(one.Mechanism), one.Iterations, admin.NewSalt()
		var err error
		if u.SaltedPassword, err = admin.SaltPassword(one.Mechanism, one.Password, u.Salt, int(one.Iterations)); err != nil {
			return err
		}
		req.Upsertions = append(req.Upsertions, u)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return err
	}
	var failed []error
	for _, r := range resp.Results {
		failed = append(failed, Answered(r.ErrorCode, r.ErrorMessage))
	}
	return errors.Join(failed...)
}
