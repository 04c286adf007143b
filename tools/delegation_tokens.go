package tools

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"barnabas/broker/acl"
	"barnabas/tools/options"
)

var delegationTokenOptions = []options.Option{
	{Name: "bootstrap-server", Arity: options.One, Value: "String", Doc: "Brokers to connect to, as host:port, separated by commas. Required."},
	{Name: "command-config", Arity: options.One, Value: "String", Doc: "Property file with settings of the client. Required: nothing about tokens is answered to a client that does not prove who it is, or that does so by a token."},
	{Name: "create", Doc: "Make a token. --renewer-principal says who may renew it."},
	{Name: "describe", Doc: "Show tokens that concern the principals of --owner-principal; without it all that may be seen."},
	{Name: "expire", Doc: "Move the end of a token to --expiry-time-period from now."},
	{Name: "expiry-time-period", Arity: options.MaybeNumber, Value: "Long", Doc: "Milliseconds from now after which the token ends; -1 ends it at once."},
	{Name: "help", Doc: "Print this text."},
	{Name: "hmac", Arity: options.Maybe, Value: "String", Doc: "HMAC of the token, in base64."},
	{Name: "max-life-time-period", Arity: options.MaybeNumber, Value: "Long", Doc: "Milliseconds that the token may live in all; -1 is as long as the brokers allow (delegation.token.max.lifetime.ms)."},
	{Name: "owner-principal", Arity: options.Maybe, Value: "String", Doc: "Owner, as principalType:name. With --create: who the token is to stand for, if that is somebody else."},
	{Name: "renew", Doc: "Renew a token for --renew-time-period."},
	{Name: "renew-time-period", Arity: options.MaybeNumber, Value: "Long", Doc: "Milliseconds from now until which the token is good; -1 is what the brokers take (delegation.token.expiry.time.ms)."},
	{Name: "renewer-principal", Arity: options.Maybe, Value: "String", Doc: "Who may renew the token, as principalType:name. Any number of times."},
	{Name: "version", Doc: "Print the version."},
}

// tokenActions are what can be done: what each needs, and what makes no sense with it.
var tokenActions = []struct {
	name          string
	needs, denies []string
	run           func(f face, client *kgo.Client, set *options.Set) error
}{
	{"create", []string{"max-life-time-period"}, []string{"hmac", "renew-time-period", "expiry-time-period"}, createToken},
	{"renew", []string{"hmac", "renew-time-period"}, []string{"renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"}, renewToken},
	{"expire", []string{"hmac", "expiry-time-period"}, []string{"renew", "max-life-time-period", "renew-time-period", "owner-principal"}, expireToken},
	{"describe", nil, []string{"renew-time-period", "max-life-time-period", "hmac", "expiry-time-period"}, describeTokens},
}

// DelegationTokens is kafka-delegation-tokens.
func DelegationTokens(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.admin.DelegationTokenCommand", intro: "This tool helps to create, renew, expire, or describe delegation tokens.", options: delegationTokenOptions,
		misread: exception, stdout: stdout, stderr: stderr}
	if compat39() {
		f.misread = onlyReason
	}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	run, reason := tokenAction(set)
	if reason != "" {
		return f.usage(reason)
	}
	client, err := connectForTokens(set)
	if err != nil {
		return f.uncaught(err)
	}
	defer client.Close()
	switch err := run(f, client, set); {
	case err == nil:
		return 0
	case compat39():
		fmt.Fprintf(stderr, "%s\n%s\n", executionFailure(err), stackTrace(err))
	default:
		fmt.Fprintf(stdout, "Error while executing delegation token command : %s\n", executionFailure(err))
	}
	return 1
}

// tokenAction finds what is to be done, or why options do not go together.
func tokenAction(set *options.Set) (run func(face, *kgo.Client, *options.Set) error, mistake string) {
	needs := []string{"bootstrap-server", "command-config"}
	actions := 0
	for _, a := range tokenActions {
		if set.Has(a.name) {
			actions++
			run, needs = a.run, append(needs, a.needs...)
		}
	}
	if actions != 1 {
		return nil, "Command must include exactly one action: --create, --renew, --expire or --describe"
	}
	for _, needed := range needs {
		if !set.Has(needed) {
			return nil, missing(needed)
		}
	}
	for _, a := range tokenActions {
		for _, denied := range a.denies {
			if set.Has(a.name) && set.Has(denied) {
				return nil, notTogether(a.name, denied)
			}
		}
	}
	return run, ""
}

// connectForTokens makes a client that does not ask an older broker for a token for somebody else: it would make one for whoever asks.
func connectForTokens(set *options.Set) (*kgo.Client, error) {
	settings, err := adminClient.settings(set)
	if err != nil {
		return nil, err
	}
	if !set.Has("create") || !set.Has("owner-principal") {
		return connect(settings)
	}
	var least kversion.Versions
	least.SetMaxKeyVersion(kmsg.CreateDelegationToken.Int16(), createForOthers)
	return connect(settings, kgo.MinVersions(&least))
}

// createForOthers is the version of CreateDelegationToken from which on a request can name another owner (KIP-373).
const createForOthers = 3

func createToken(f face, client *kgo.Client, set *options.Set) error {
	renewers, err := readPrincipals(set.Values("renewer-principal"))
	if err != nil {
		return err
	}
	req := kmsg.NewPtrCreateDelegationTokenRequest()
	if req.MaxLifetimeMillis, err = set.Int("max-life-time-period", 0); err != nil {
		return err
	}
	fmt.Fprintf(f.stdout, "Calling create token operation with renewers :%s , max-life-time-period :%d\n", principalTexts(renewers), req.MaxLifetimeMillis)
	for _, r := range renewers {
		req.Renewers = append(req.Renewers, kmsg.CreateDelegationTokenRequestRenewer{PrincipalType: r.Type, PrincipalName: r.Name})
	}
	owners, err := readPrincipals(set.Values("owner-principal"))
	if err != nil {
		return err
	}
	if len(owners) > 0 {
		req.OwnerPrincipalType, req.OwnerPrincipalName = &owners[0].Type, &owners[0].Name
	}
	resp, err := req.RequestWith(context.Background(), client)
	if err == nil {
		err = answered(resp.ErrorCode, nil)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(f.stdout, "Created delegation token with tokenId : %s\n", resp.TokenID)
	row := tokenRow{
		id: resp.TokenID, hmac: resp.HMAC, owner: acl.Principal{Type: resp.PrincipalType, Name: resp.PrincipalName}, renewers: renewers,
		requester: acl.Principal{Type: resp.TokenRequesterPrincipalType, Name: resp.TokenRequesterPrincipalName},
		issued:    resp.IssueTimestamp, expires: resp.ExpiryTimestamp, latest: resp.MaxTimestamp,
	}
	printTokens(f, []tokenRow{row})
	return nil
}

func renewToken(f face, client *kgo.Client, set *options.Set) error {
	return moveTokenEnd(f, set, "renew", "renew-time-period", func(hmac []byte, period int64) (int64, int16, error) {
		req := kmsg.NewPtrRenewDelegationTokenRequest()
		req.HMAC, req.RenewTimeMillis = hmac, period
		resp, err := req.RequestWith(context.Background(), client)
		if err != nil {
			return 0, 0, err
		}
		return resp.ExpiryTimestamp, resp.ErrorCode, nil
	})
}

func expireToken(f face, client *kgo.Client, set *options.Set) error {
	return moveTokenEnd(f, set, "expire", "expiry-time-period", func(hmac []byte, period int64) (int64, int16, error) {
		req := kmsg.NewPtrExpireDelegationTokenRequest()
		req.HMAC, req.ExpiryPeriodMillis = hmac, period
		resp, err := req.RequestWith(context.Background(), client)
		if err != nil {
			return 0, 0, err
		}
		return resp.ExpiryTimestamp, resp.ErrorCode, nil
	})
}

// moveTokenEnd asks for another end of the token of --hmac.
func moveTokenEnd(f face, set *options.Set, operation, option string, ask func(hmac []byte, period int64) (expires int64, code int16, err error)) error {
	text, err := set.Value("hmac")
	if err != nil {
		return err
	}
	period, err := set.Int(option, 0)
	if err != nil {
		return err
	}
	before := ""
	if operation == "expire" && !compat39() {
		before = " "
	}
	fmt.Fprintf(f.stdout, "Calling %s token operation with hmac :%s , %s-time-period :%s%d\n", operation, text, operation, before, period)
	hmac, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return &badArgument{"--hmac is not base64: " + err.Error()}
	}
	expires, code, err := ask(hmac, period)
	if err == nil {
		err = answered(code, nil)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(f.stdout, "Completed %s operation. New expiry date : %s", operation, tokenDate(expires))
	if !compat39() {
		fmt.Fprintln(f.stdout)
	}
	return nil
}

// describeTokens asks for all tokens when no owner is named, as the help says and 2.8's tool does; that of 3.9 asks for those of nobody then, and finds none.
func describeTokens(f face, client *kgo.Client, set *options.Set) error {
	owners, err := readPrincipals(set.Values("owner-principal"))
	if err != nil {
		return err
	}
	switch {
	case len(owners) == 0:
		fmt.Fprintln(f.stdout, "Calling describe token operation for current user.")
	case compat39():
		fmt.Fprintf(f.stdout, "Calling describe token operation for owners: %s\n", principalTexts(owners))
	default:
		fmt.Fprintf(f.stdout, "Calling describe token operation for owners :%s\n", principalTexts(owners))
	}
	req := kmsg.NewPtrDescribeDelegationTokenRequest()
	for _, o := range owners {
		req.Owners = append(req.Owners, kmsg.DescribeDelegationTokenRequestOwner{PrincipalType: o.Type, PrincipalName: o.Name})
	}
	resp, err := req.RequestWith(context.Background(), client)
	if err == nil {
		err = answered(resp.ErrorCode, nil)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(f.stdout, "Total number of tokens : %d", len(resp.TokenDetails))
	if !compat39() {
		fmt.Fprintln(f.stdout)
	}
	var rows []tokenRow
	for _, d := range resp.TokenDetails {
		row := tokenRow{
			id: d.TokenID, hmac: d.HMAC, owner: acl.Principal{Type: d.PrincipalType, Name: d.PrincipalName},
			requester: acl.Principal{Type: d.TokenRequesterPrincipalType, Name: d.TokenRequesterPrincipalName},
			issued:    d.IssueTimestamp, expires: d.ExpiryTimestamp, latest: d.MaxTimestamp,
		}
		for _, r := range d.Renewers {
			row.renewers = append(row.renewers, acl.Principal{Type: r.PrincipalType, Name: r.PrincipalName})
		}
		rows = append(rows, row)
	}
	printTokens(f, rows)
	return nil
}

func principalTexts(principals []acl.Principal) string {
	texts := make([]string, len(principals))
	for i, p := range principals {
		texts[i] = p.String()
	}
	return javaList(texts)
}

// tokenRow is a token as it is printed.
type tokenRow struct {
	id                      string
	hmac                    []byte
	owner, requester        acl.Principal
	renewers                []acl.Principal
	issued, expires, latest int64
}

// printTokens prints the table, which has a column more since 3.9.
func printTokens(f face, rows []tokenRow) {
	columns := []string{"TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE"}
	const requester = 3
	cells := func(row []string) string {
		widths := []int{15, 30, 15, 15, 25, 15, 15, 15}
		if !compat39() {
			row, widths = slices.Delete(row, requester, requester+1), slices.Delete(widths, requester, requester+1)
		}
		padded := make([]string, len(row))
		for i, cell := range row {
			padded[i] = fmt.Sprintf("%-*s", widths[i], cell)
		}
		return strings.Join(padded, " ")
	}
	fmt.Fprintf(f.stdout, "\n%s", cells(columns))
	if compat39() {
		fmt.Fprintln(f.stdout)
	}
	for _, r := range rows {
		fmt.Fprintf(f.stdout, "\n%s\n", cells([]string{r.id, base64.StdEncoding.EncodeToString(r.hmac), r.owner.String(), r.requester.String(), principalTexts(r.renewers),
			tokenDate(r.issued), tokenDate(r.expires), tokenDate(r.latest)}))
	}
}

func tokenDate(millis int64) string { return time.UnixMilli(millis).Format("2006-01-02T15:04") }
