package zkstate

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

// Token is the data of TokenPath. Principals are Type:name. The HMAC is not stored: it follows from the id and
// the brokers' secret.
type Token struct {
	Version                          int32 // 1; 2 since Kafka 3.x; 3 with the requester (KIP-373)
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
	if t.Version >= 3 {
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
	for _, r := range o.strs("renewers") {
		t.Renewers = append(t.Renewers, name("renewers", r))
	}
	if t.Requester = t.Owner; o.has("tokenRequester") {
		t.Requester = name("tokenRequester", o.str("tokenRequester"))
	}
	return t, o.wrapped()
}
