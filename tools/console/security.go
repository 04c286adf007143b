package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// Who may do what:
//
//   - With users, everybody says who he is (Basic authentication): viewers read, operators act too.
//   - Without users, and bound to a loopback address, whoever is on this machine may act. Requests have to name it by a loopback name, or any page of the web could have its own name resolved to
//     127.0.0.1 and read along.
//   - Without users and bound to anything else, nobody may act and nobody reads records; the rest can be read.
//
// A request that changes something comes from a page of this console: browsers say where from (Sec-Fetch-Site, Origin), and it has to carry the token of its user, which only those pages hold.

// user is who asks.
type user struct {
	name    string // "" where nobody is asked
	acts    bool
	records bool // may read what records say
}

// handlerFunc answers somebody who may ask.
type handlerFunc func(w http.ResponseWriter, r *http.Request, who user)

// guard decides who asks, and what he may.
type guard struct {
	users  Users
	local  bool // bound to a loopback address
	secret []byte
	tries  *tries
	log    *logrus.Entry
}

func newGuard(cfg Config) guard {
	secret := make([]byte, sha256.Size)
	rand.Read(secret) //nolint:errcheck // never fails
	return guard{users: cfg.Users, secret: secret, tries: &tries{until: map[netip.Prefix]time.Time{}}, log: cfg.Log}
}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// String says who may do what.
func (g guard) String() string {
	switch {
	case g.users != nil:
		return "for those who sign in"
	case g.local:
		return "open to everybody on this machine"
	}
	return "read-only and without records, since it can be reached from elsewhere and has no users (barnabas.console.users)"
}

// who tells who asks; it answers the request itself when he may not.
func (g guard) who(w http.ResponseWriter, r *http.Request) (user, bool) {
	if g.users == nil {
		if g.local && !namesLoopback(r.Host) {
			plain(w, http.StatusMisdirectedRequest, "this console is asked by a loopback address or localhost only")
			return user{}, false
		}
		return user{acts: g.local, records: g.local}, true
	}
	name, password, given := r.BasicAuth()
	if given {
		var acts bool
		right, looked := g.tries.look(placeOf(r.RemoteAddr), time.Now(), func() (ok bool) {
			acts, ok = g.users.check(name, password)
			return ok
		})
		switch {
		case right:
			return user{name: name, acts: acts, records: true}, true
		case !looked:
			w.Header().Set("Retry-After", "1")
			plain(w, http.StatusTooManyRequests, "a wrong password came from there just now: try again in a second")
			return user{}, false
		}
		g.log.Warnf("console: a wrong password of %q from %s", name, r.RemoteAddr)
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="barnabas", charset="UTF-8"`)
	plain(w, http.StatusUnauthorized, "sign in")
	return user{}, false
}

func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || strings.EqualFold(host, "localhost")
}

// reading lets in who may read.
func (g *guard) reading(serve handlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who, ok := g.who(w, r); ok {
			serve(w, r, who)
		}
	})
}

// acting lets in who may act, from a page of this console where it is to change something.
func (g *guard) acting(serve handlerFunc) http.Handler {
	return g.reading(func(w http.ResponseWriter, r *http.Request, who user) {
		if !who.acts {
			plain(w, http.StatusForbidden, "you may look here, and not act")
			return
		}
		if r.Method == http.MethodPost {
			if err := g.checkPost(w, r, who); err != nil {
				plain(w, http.StatusForbidden, err.Error())
				return
			}
		}
		serve(w, r, who)
	})
}

func (g *guard) checkPost(w http.ResponseWriter, r *http.Request, who user) error {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		return err
	}
	if !hmac.Equal([]byte(r.PostForm.Get("token")), []byte(g.token(who))) {
		return errors.New("the form is not of this console, or of before it was started again: load the page anew")
	}
	return nil
}

// token is what a user's forms carry. It holds while the console runs.
func (g *guard) token(who user) string {
	mac := hmac.New(sha256.New, g.secret)
	mac.Write([]byte(who.name))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// protected puts limits and headers around all answers: nothing but what this server itself sends is loaded, run or framed.
func protected(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if len(r.RequestURI) > maxURL {
			plain(w, http.StatusRequestURITooLong, "the address is too long")
			return
		}
		next.ServeHTTP(w, r)
	})
}
