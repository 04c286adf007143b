package oauth

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is what a listener's mechanism, or a client, is told.
type Config struct {
	// Setting looks up a setting by its name, such as sasl.oauthbearer.jwks.endpoint.url; "" stands for none.
	Setting func(name string) string
	// Options are those of the login module. They hold secrets.
	Options map[string]string
	// AllowedURLs are the only ones that settings may name; nil: any.
	AllowedURLs []string
}

func (c Config) text(name, otherwise string) string {
	if value := strings.TrimSpace(c.Setting(name)); value != "" {
		return value
	}
	return otherwise
}

// span reads a whole number of units, cut off at the longest duration.
func (c Config) span(name string, unit, otherwise time.Duration) (time.Duration, error) {
	text := c.text(name, "")
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %q is no whole number from 0 on", name, text)
	}
	return time.Duration(min(n, math.MaxInt64/int64(unit))) * unit, nil
}

func (c Config) fraction(name string, otherwise float64) (float64, error) {
	text := c.text(name, "")
	if text == "" {
		return otherwise, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, fmt.Errorf("%s: %q is no number from 0 to 1", name, text)
	}
	return f, nil
}

// The schemes of endpoints.
const (
	schemeFile  = "file"
	schemeHTTP  = "http"
	schemeHTTPS = "https"
)

// endpoint reads a URL, whose scheme is one of the three.
func (c Config) endpoint(name string) (*url.URL, error) {
	text := c.text(name, "")
	if text == "" {
		return nil, fmt.Errorf("%s is not set", name)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	switch u.Scheme { // which Parse has made lower case
	case schemeFile:
		if u.Path == "" {
			return nil, fmt.Errorf("%s: %s names no file", name, u.Redacted())
		}
	case schemeHTTP, schemeHTTPS:
		if u.Hostname() == "" {
			return nil, fmt.Errorf("%s: %s names no host", name, u.Redacted())
		}
	default:
		return nil, fmt.Errorf("%s: %s is none of file, http, https", name, u.Redacted())
	}
	if c.AllowedURLs != nil && !slices.Contains(c.AllowedURLs, text) {
		return nil, fmt.Errorf("%s: %s is not among those that the system property org.apache.kafka.sasl.oauthbearer.allowed.urls allows", name, u.Redacted())
	}
	return u, nil
}
