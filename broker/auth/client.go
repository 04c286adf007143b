package auth

import (
	"context"

	"github.com/twmb/franz-go/pkg/sasl"
	franz "github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"barnabas/oauth"
)

// Client is the client's side of a mechanism that is served; nil for another name. With byToken, user is the id of a delegation token and
// password its HMAC in base64, which only SCRAM can tell (KIP-48).
func Client(mechanism, user, password string, byToken bool) sasl.Mechanism {
	switch mechanism {
	case "PLAIN":
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password, IsToken: byToken}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password, IsToken: byToken}.AsSha512Mechanism()
	}
	return nil
}

// BearerClient is the client's side of OAUTHBEARER, with the token that a login holds at the time.
func BearerClient(login *oauth.Login) sasl.Mechanism {
	return franz.Oauth(func(ctx context.Context) (franz.Auth, error) {
		token, err := login.Token(ctx)
		return franz.Auth{Token: token.Value, Extensions: login.Extensions}, err
	})
}
