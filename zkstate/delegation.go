package zkstate

import (
	"context"
	"fmt"
)

// Delegation tokens (KIP-48).

// Paths of delegation tokens.
const (
	DelegationTokenPath        = "/delegation_token"
	DelegationTokensPath       = "/delegation_token/tokens"
	DelegationTokenChangesPath = "/delegation_token/token_changes"
	tokenChangePrefix          = "token_change_"
)

// TokenPath is the node of one token.
func TokenPath(id string) string { return DelegationTokensPath + "/" + id }

// Versions of Token. Kafka writes 3 since 3.3 and reads 1, too; before 3.3 it writes and reads 1 alone, and a token of
// another version is unknown there.
const (
	TokenVersion1 = 1 // the requester is the owner
	TokenVersion3 = 3 // names the requester (KIP-373)
)

// Token is the data of TokenPath. Principals are Type:name. The HMAC is not stored: it follows from the id and
// the brokers' secret.
type Token struct {
	Version                          int32 // one of the constants above
	ID, Owner, Requester             string
	Renewers                         []string
	IssuedMs, ExpiresMs, ExpiresAtMs int64 // ExpiresMs is when it ends unless renewed, ExpiresAtMs the very last moment
}

// Encode writes the node as the Kafka of that version does.
func (t Token) Encode() []byte {
	renewers := make([]string, len(t.Renewers))
	for i, r := range t.Renewers {
		renewers[i] = SanitizeName(r)
	}
	var w jsonWriter
	w.open('{')
	w.key("issueTimestamp")
	w.int(t.IssuedMs)
	w.key("renewers")
	w.strs(renewers)
	if t.Version >= TokenVersion3 {
		w.key("tokenRequester")
		w.str(SanitizeName(t.Requester))
	}
	w.key("tokenId")
	w.str(t.ID)
	w.key("owner")
	w.str(SanitizeName(t.Owner))
	w.key("expiryTimestamp")
	w.int(t.ExpiresMs)
	w.key("maxTimestamp")
	w.int(t.ExpiresAtMs)
	w.key("version")
	w.int(int64(t.Version))
	w.close('}')
	return w.buf
}

// DecodeToken reads any version of the node.
func DecodeToken(data []byte) (Token, error) {
	o := parseObject("delegation token", data)
	name := func(field, s string) string {
		n, err := DesanitizeName(s)
		if err != nil {
			o.fail(field, err)
		}
		return n
	}
	t := Token{Version: o.int32("version"), ID: o.str("tokenId"), Owner: name("owner", o.str("owner")),
		IssuedMs: o.number("issueTimestamp"), ExpiresMs: o.number("expiryTimestamp"), ExpiresAtMs: o.number("maxTimestamp")}
	if t.Version < TokenVersion1 || t.Version > TokenVersion3 {
		o.fail("version", fmt.Errorf("%d is not known", t.Version))
	}
	for _, r := range o.strs("renewers") {
		t.Renewers = append(t.Renewers, name("renewers", r))
	}
	if t.Requester = t.Owner; o.has("tokenRequester") {
		t.Requester = name("tokenRequester", o.str("tokenRequester"))
	}
	return t, o.wrapped()
}

// StoredToken is a token as it was read. Err tells that its node is gone (ErrNoNode) or cannot be read.
type StoredToken struct {
	Token
	DataVersion int32 // of the node
	Err         error
}

// MakeTokenPaths makes the directories, as brokers do that serve tokens.
func (c *Client) MakeTokenPaths(ctx context.Context) error {
	return c.makePaths(ctx, DelegationTokenChangesPath, DelegationTokensPath)
}

// TokenIDs lists the tokens.
func (c *Client) TokenIDs(ctx context.Context) ([]string, error) {
	listed, err := c.One(ctx, Children(DelegationTokensPath))
	return listed.Children, err
}

// Tokens reads tokens, in line with their ids.
func (c *Client) Tokens(ctx context.Context, ids ...string) ([]StoredToken, error) {
	reads := make([]Op, len(ids))
	for i, id := range ids {
		reads[i] = Get(TokenPath(id))
	}
	results, err := c.Do(ctx, reads)
	if err != nil {
		return nil, fmt.Errorf("reading delegation tokens: %w", err)
	}
	found := make([]StoredToken, len(ids))
	for i, r := range results {
		found[i] = StoredToken{DataVersion: r.Stat.Version, Err: r.Err}
		if r.Err == nil {
			found[i].Token, found[i].Err = DecodeToken(r.Data)
		}
	}
	return found, nil
}

// CreateToken makes a token and tells the brokers of it; both happen or none.
func (c *Client) CreateToken(ctx context.Context, t Token) error {
	return c.changeToken(ctx, t.ID, Create(TokenPath(t.ID), t.Encode()))
}

// SetToken rewrites a token if its node has still the version given, and tells the brokers.
func (c *Client) SetToken(ctx context.Context, t Token, version int32) error {
	return c.changeToken(ctx, t.ID, Set(TokenPath(t.ID), t.Encode(), version))
}

// DeleteToken removes a token if its node has still the version given, and tells the brokers.
func (c *Client) DeleteToken(ctx context.Context, id string, version int32) error {
	return c.changeToken(ctx, id, Delete(TokenPath(id), version))
}

func (c *Client) changeToken(ctx context.Context, id string, change Op) error {
	_, err := c.Multi(ctx, []Op{change, CreateSequential(DelegationTokenChangesPath+"/"+tokenChangePrefix, []byte(id))})
	return err
}
