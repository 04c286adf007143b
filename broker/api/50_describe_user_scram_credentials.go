package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeUserScramCredentials, key 50, version 0 (KIP-554), to any broker: the
// mechanisms and iterations of the users named, or of all that have credentials
// when none is. What is secret is never told.
func (d *Dispatcher) describeUserScramCredentials(c *call, req *kmsg.DescribeUserSCRAMCredentialsRequest) {
	if !d.mayCluster(c, kmsg.ACLOperationDescribe) {
		resp := kmsg.NewPtrDescribeUserSCRAMCredentialsResponse()
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		for range req.Users { // their names are not repeated
			resp.Results = append(resp.Results, kmsg.DescribeUserSCRAMCredentialsResponseResult{ErrorCode: resp.ErrorCode})
		}
		c.answer(resp)
		return
	}
	users := make([]string, len(req.Users))
	for i, u := range req.Users {
		users[i] = u.Name
	}
	d.work(c, func(ctx context.Context) {
		resp := kmsg.NewPtrDescribeUserSCRAMCredentialsResponse()
		found, err := d.deps.Admin.DescribeUserScramCredentials(ctx, users)
		d.faults("describing SCRAM credentials", err)
		resp.ErrorCode, resp.ErrorMessage = code(err)
		resp.ErrorMessage = emptyText(resp.ErrorCode, resp.ErrorMessage)
		for _, f := range found {
			d.faults("describing the SCRAM credentials of "+f.User, f.Err)
			row := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
			row.User = f.User
			row.ErrorCode, row.ErrorMessage = code(f.Err)
			row.ErrorMessage = emptyText(row.ErrorCode, row.ErrorMessage)
			for _, info := range f.Credentials {
				row.CredentialInfos = append(row.CredentialInfos, kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo{
					Mechanism: int8(info.Mechanism), Iterations: info.Iterations,
				})
			}
			resp.Results = append(resp.Results, row)
		}
		c.answer(resp)
	})
}
