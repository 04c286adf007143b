package oauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// tokenEndpoint issues tokens to clients by their own credentials (RFC 6749, section 4.4).
type tokenEndpoint struct {
	where        *url.URL
	asks         *caller
	credentials  string // as the header Authorization has them
	form         string
	pause, tries time.Duration
}

// newTokenEndpoint reads the options clientId, clientSecret and scope, and the settings sasl.login.*.
func newTokenEndpoint(c Config, where *url.URL) (*tokenEndpoint, error) {
	id, secret := strings.TrimSpace(c.Options["clientId"]), strings.TrimSpace(c.Options["clientSecret"])
	if id == "" || secret == "" {
		return nil, errors.New("the login module needs the options clientId and clientSecret")
	}
	if strings.EqualFold(c.text("sasl.oauthbearer.header.urlencode", "false"), "true") {
		id, secret = url.QueryEscape(id), url.QueryEscape(secret)
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if scope := strings.TrimSpace(c.Options["scope"]); scope != "" {
		form.Set("scope", scope)
	}
	e := &tokenEndpoint{where: where, credentials: "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret)), form: form.Encode()}
	connecting, err := c.span("sasl.login.connect.timeout.ms", time.Millisecond, usualWait)
	if err != nil {
		return nil, err
	}
	answering, err := c.span("sasl.login.read.timeout.ms", time.Millisecond, usualWait)
	if err != nil {
		return nil, err
	}
	if e.pause, e.tries, err = c.pauses("sasl.login.retry.backoff"); err != nil {
		return nil, err
	}
	e.asks, err = c.caller(where, connecting, answering)
	return e, err
}

func (e *tokenEndpoint) obtain(ctx context.Context) (token string, err error) {
	err = retry(ctx, e.pause, e.tries, func() error {
		token, err = e.once(ctx)
		return err
	})
	return token, err
}

func (e *tokenEndpoint) once(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.where.String(), strings.NewReader(e.form))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", e.credentials)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Cache-Control", "no-cache")
	status, body, err := e.asks.ask(req)
	if err != nil {
		return "", err
	}
	if status != http.StatusOK && status != http.StatusCreated {
		err = fmt.Errorf("HTTP status %d%s", status, complaint(body))
		if isFinal(status) {
			err = final{err}
		}
		return "", err
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if json.Unmarshal(body, &answer) != nil || strings.TrimSpace(answer.AccessToken) == "" {
		return "", final{errors.New("the answer has no access_token")} // and may hold secrets
	}
	return strings.TrimSpace(answer.AccessToken), nil
}

// isFinal tells of which answers another try would be the same.
func isFinal(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return true
	}
	return status >= 400 && status < 500
}

// complaint is what an endpoint says when it refuses (RFC 6749, section 5.2), made fit for a log.
func complaint(body []byte) string {
	var answer struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error == "" {
		return ""
	}
	return fmt.Sprintf(": %.200q %.200q", answer.Error, answer.Description)
}
