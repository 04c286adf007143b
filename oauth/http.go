package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"barnabas/ssl"
)

const (
	usualWait = 20 * time.Second // for a connection, and for an answer
	maxAnswer = 1 << 20
)

// caller asks an address over HTTP. It holds no connections, waits no longer than it is told, and reads no more than maxAnswer.
type caller struct{ client *http.Client }

// caller makes one. Options of the login module say whom to trust, under the names of ssl.* settings.
func (c Config) caller(where *url.URL, connecting, answering time.Duration) (*caller, error) {
	if connecting == 0 || answering == 0 { // which would be for ever
		connecting, answering = usualWait, usualWait
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: connecting}).DialContext,
		TLSHandshakeTimeout: connecting,
		DisableKeepAlives:   true,
	}
	if where.Scheme == schemeHTTPS {
		encryption, err := ssl.Client(func(name string) string {
			value, given := c.Options[name]
			if !given && name == "ssl.endpoint.identification.algorithm" {
				return "https"
			}
			return value
		})
		if err != nil {
			return nil, fmt.Errorf("the login module's options: %w", err)
		}
		transport.TLSClientConfig = encryption(net.JoinHostPort(where.Hostname(), where.Port()))
	}
	return &caller{&http.Client{Transport: transport, Timeout: connecting + answering}}, nil
}

func (c *caller) ask(req *http.Request) (status int, body []byte, err error) {
	req.Header.Set("Accept", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	return resp.StatusCode, body, err
}

// get gives what stands at an address.
func (c *caller) get(ctx context.Context, where string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, err
	}
	status, body, err := c.ask(req)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("HTTP status %d", status)
	}
	return body, err
}

// pauses reads the settings of retry.
func (c Config) pauses(prefix string) (first, all time.Duration, err error) {
	if first, err = c.span(prefix+".ms", time.Millisecond, 100*time.Millisecond); err != nil {
		return 0, 0, err
	}
	if all, err = c.span(prefix+".max.ms", time.Millisecond, 10*time.Second); err != nil {
		return 0, 0, err
	}
	if all < first {
		return 0, 0, fmt.Errorf("%s.max.ms: %s is less than %s.ms, %s", prefix, all, prefix, first)
	}
	return first, all, nil
}

// final is an error that trying again would not mend.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// retry tries again and again, with pauses that double from the first on, for as long as all of it. It gives the last error.
func retry(ctx context.Context, first, all time.Duration, try func() error) error {
	end := time.Now().Add(all)
	for pause := first; ; pause *= 2 {
		err := try()
		if err == nil || errors.As(err, &final{}) {
			return err
		}
		wait := min(pause, time.Until(end))
		if wait <= 0 {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}
