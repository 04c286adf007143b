package oauth

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// renewalPause is how long after a failed renewal the next one is tried.
const renewalPause = 10 * time.Second

// Login holds a client's token and renews it in time. One that cannot be renewed is used while it is good.
type Login struct {
	Extensions map[string]string // that are shown with the token

	obtain  func(ctx context.Context) (Bearer, error)
	refresh refresh
	log     *logrus.Entry

	renewing sync.Mutex
	mu       struct {
		sync.Mutex
		current Bearer
		next    time.Time // to renew it
		failed  error     // why there is no good one
	}
}

// NewLogin takes tokens from where sasl.oauthbearer.token.endpoint.url says: an endpoint that issues them to clients by their own credentials, or a file (KIP-768).
func NewLogin(c Config, log *logrus.Entry) (*Login, error) {
	const name = "sasl.oauthbearer.token.endpoint.url"
	where, err := c.endpoint(name)
	if err != nil {
		return nil, err
	}
	value := func(context.Context) (string, error) {
		text, err := os.ReadFile(where.Path) // each time: who renews it there need not start this program again
		return strings.TrimSpace(string(text)), err
	}
	if where.Scheme != schemeFile {
		e, err := newTokenEndpoint(c, where)
		if err != nil {
			return nil, err
		}
		value = e.obtain
	}
	scopeClaim, subjectClaim := c.text("sasl.oauthbearer.scope.claim.name", "scope"), c.text("sasl.oauthbearer.sub.claim.name", "sub")
	return c.login("extension_", log, func(ctx context.Context) (Bearer, error) {
		token, err := value(ctx)
		if err != nil {
			return Bearer{}, fmt.Errorf("%s: %w", name, err)
		}
		b, err := readBearer(token, scopeClaim, subjectClaim)
		if err != nil {
			return Bearer{}, fmt.Errorf("%s: what it gives is no token: %w", name, err)
		}
		return b, nil
	})
}

// NewUnsecuredLogin makes tokens that nobody signs, of what the options unsecuredLogin* say.
func NewUnsecuredLogin(c Config, log *logrus.Entry) (*Login, error) {
	mint, err := newMint(c.Options)
	if err != nil {
		return nil, err
	}
	return c.login("unsecuredLoginExtension_", log, func(context.Context) (Bearer, error) { return mint.token(time.Now()), nil })
}

func (c Config) login(extensions string, log *logrus.Entry, obtain func(context.Context) (Bearer, error)) (*Login, error) {
	l := &Login{Extensions: map[string]string{}, obtain: obtain, log: log}
	for option, value := range c.Options {
		if name, ok := strings.CutPrefix(option, extensions); ok {
			if !IsExtension(name, value) {
				return nil, fmt.Errorf("the login module's option %s is no extension (RFC 7628, section 3.1)", option)
			}
			l.Extensions[name] = value
		}
	}
	var err error
	l.refresh, err = c.refresh()
	return l, err
}

// IsExtension tells whether a client may show this besides its token.
func IsExtension(name, value string) bool {
	letter := func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }
	text := func(r rune) bool { return r >= 0x20 && r <= 0x7e || r == '\t' || r == '\r' || r == '\n' }
	return name != "" && value != "" && name != "auth" && strings.IndexFunc(name, func(r rune) bool { return !letter(r) }) < 0 &&
		strings.IndexFunc(value, func(r rune) bool { return !text(r) }) < 0
}

// Token gives a token. Who comes when it is time for a new one waits for it, unless somebody is getting it already.
func (l *Login) Token(ctx context.Context) (Bearer, error) {
	current, next, failed := l.state()
	now := time.Now()
	if now.Before(next) {
		return current, failed
	}
	if !l.renewing.TryLock() {
		if now.Before(current.Expires) {
			return current, nil
		}
		l.renewing.Lock()
	}
	defer l.renewing.Unlock()
	return l.renew(ctx)
}

// Keep renews the token in time until ctx ends, so that nobody waits for it.
func (l *Login) Keep(ctx context.Context) {
	for {
		_, next, _ := l.state()
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		l.renewing.Lock()
		_, _ = l.renew(ctx) // which tells the log
		l.renewing.Unlock()
	}
}

func (l *Login) state() (current Bearer, next time.Time, failed error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.current, l.mu.next, l.mu.failed
}

// renew gets a new token, unless somebody else just has. renewing is held.
func (l *Login) renew(ctx context.Context) (Bearer, error) {
	if current, next, failed := l.state(); time.Now().Before(next) {
		return current, failed
	}
	b, err := l.obtain(ctx)
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.mu.current, l.mu.next, l.mu.failed = b, l.refresh.at(b, now, rand.Float64()), nil
		return b, nil
	}
	if ctx.Err() == nil {
		l.mu.next = now.Add(renewalPause)
		l.log.WithError(err).Warnf("no new bearer token; the next try is in %s", renewalPause)
	}
	if now.Before(l.mu.current.Expires) {
		return l.mu.current, nil
	}
	l.mu.failed = err
	return Bearer{}, err
}

var errSections = errors.New("a token has three sections")

// readBearer reads what a client looks at: of the signature it knows nothing.
func readBearer(token, scopeClaim, subjectClaim string) (Bearer, error) {
	sections := strings.Split(token, ".")
	if len(sections) != 3 || sections[0] == "" || sections[1] == "" || sections[2] == "" {
		return Bearer{}, errSections
	}
	c, err := decodeClaims(sections[1])
	if err != nil {
		return Bearer{}, err
	}
	if err := checkScope(c, scopeClaim); err != nil {
		return Bearer{}, err
	}
	b := Bearer{Value: token}
	if b.Subject, err = c.subject(subjectClaim); err != nil {
		return Bearer{}, err
	}
	expires, said, err := c.seconds("exp")
	if err != nil || !said || expires < 0 {
		return Bearer{}, errors.Join(errors.New("it does not say when it ends"), err)
	}
	b.Expires = moment(expires)
	issued, said, err := c.seconds("iat")
	if err != nil || issued < 0 {
		return Bearer{}, errors.Join(errors.New("it does not say when it began"), err)
	}
	if said {
		b.Issued = moment(issued)
	}
	return b, nil
}
