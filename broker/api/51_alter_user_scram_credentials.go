package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
)

// AlterUserScramCredentials, key 51, version 0 (KIP-554), to the controller.
func (d *Dispatcher) alterUserScramCredentials(c *call, req *kmsg.AlterUserSCRAMCredentialsRequest) {
	if !d.deps.Controller.IsActive() {
		c.answer(scramRefused(req, kerr.NotController))
		return
	}
	if !d.mayCluster(c, kmsg.ACLOperationAlter) {
		c.answer(scramRefused(req, kerr.ClusterAuthorizationFailed))
		return
	}
	upsertions := make([]admin.ScramUpsertion, len(req.Upsertions))
	for i, u := range req.Upsertions {
		upsertions[i] = admin.ScramUpsertion{
			User: u.Name, Mechanism: admin.ScramMechanism(u.Mechanism), Iterations: u.Iterations, Salt: u.Salt, SaltedPassword: u.SaltedPassword,
		}
	}
	deletions := make([]admin.ScramDeletion, len(req.Deletions))
	for i, x := range req.Deletions {
		deletions[i] = admin.ScramDeletion{User: x.Name, Mechanism: admin.ScramMechanism(x.Mechanism)}
	}
	d.work(c, func(ctx context.Context) {
		resp := kmsg.NewPtrAlterUserSCRAMCredentialsResponse()
		for _, r := range d.deps.Admin.AlterUserScramCredentials(ctx, upsertions, deletions) {
			d.faults("changing the SCRAM credentials of "+r.User, r.Err)
			row := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
			row.User = r.User
			row.ErrorCode, row.ErrorMessage = code(r.Err)
			row.ErrorMessage = emptyText(row.ErrorCode, row.ErrorMessage)
			resp.Results = append(resp.Results, row)
		}
		c.answer(resp)
	})
}

// scramRefused says the same of every user that the request names.
func scramRefused(req *kmsg.AlterUserSCRAMCredentialsRequest, e *kerr.Error) *kmsg.AlterUserSCRAMCredentialsResponse {
	var users []string
	for _, u := range req.Upsertions {
		users = append(users, u.Name)
	}
	for _, x := range req.Deletions {
		users = append(users, x.Name)
	}
	slices.Sort(users)
	resp := kmsg.NewPtrAlterUserSCRAMCredentialsResponse()
	for _, user := range slices.Compact(users) {
		resp.Results = append(resp.Results, kmsg.AlterUserSCRAMCredentialsResponseResult{User: user, ErrorCode: e.Code})
	}
	return resp
}
