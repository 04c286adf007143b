package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/admin"
	"barnabas/broker/acl"
	"barnabas/broker/api"
	"barnabas/broker/auth"
	"barnabas/broker/token"
	"barnabas/config"
	"barnabas/zkstate"
)

// tokens are the delegation tokens of the cluster, as this broker last read them: an exchange with a client waits for no ZooKeeper. What changes them is in token_changes.go.
type tokens struct {
	zk      *zkstate.Client
	secret  token.Secret
	rules   token.Rules
	version int32 // that tokens are written with
	log     *logrus.Entry

	notified *changes // read by who follows
	session  int      // generation of the one in which everything was read

	mu struct {
		sync.RWMutex
		byID   map[string]*heldToken
		byHMAC map[string]*heldToken
	}
}

// heldToken is a token with what lets its holder in, which is worked out when he comes for the first time: it takes some milliseconds.
type heldToken struct {
	token.Token
	hmac        string
	credentials map[string]func() auth.Credential // by mechanism
}

var _ api.Tokens = (*tokens)(nil)

// newTokens makes what keeps the tokens; nil where the broker has no secret for them.
func newTokens(zk *zkstate.Client, v *config.Values, log *logrus.Entry) *tokens {
	secret := v.String("delegation.token.secret.key")
	if _, set := v.Lookup("delegation.token.secret.key"); !set {
		secret = v.String("delegation.token.master.key")
	}
	if secret == "" {
		return nil
	}
	t := &tokens{
		zk: zk, secret: token.Secret(secret), log: log, version: zkstate.TokenVersion3,
		rules:    token.Rules{Lifetime: v.Int("delegation.token.max.lifetime.ms"), Renewal: v.Int("delegation.token.expiry.time.ms")},
		notified: newChanges(zk, zkstate.DelegationTokenChangesPath),
	}
	if v.ProtocolVersion("inter.broker.protocol.version") < config.V3_3IV0 {
		t.version = zkstate.TokenVersion1
	}
	t.mu.byID, t.mu.byHMAC = map[string]*heldToken{}, map[string]*heldToken{}
	return t
}

// load makes the directories and reads every token. One that cannot be read is unknown here.
func (t *tokens) load(ctx context.Context) error {
	if err := t.zk.MakeTokenPaths(ctx); err != nil {
		return err
	}
	ids, err := t.zk.TokenIDs(ctx)
	if err != nil {
		return err
	}
	t.mu.RLock()
	ids = append(ids, slices.Collect(maps.Keys(t.mu.byID))...) // those of before may be gone
	t.mu.RUnlock()
	slices.Sort(ids)
	return t.reread(ctx, slices.Compact(ids)...)
}

// reread takes over what the nodes of tokens say now.
func (t *tokens) reread(ctx context.Context, ids ...string) error {
	stored, err := t.zk.Tokens(ctx, ids...)
	if err != nil {
		return err
	}
	for i, id := range ids {
		t.learn(id, stored[i])
	}
	return nil
}

// learn takes over what the node of a token says.
func (t *tokens) learn(id string, stored zkstate.StoredToken) {
	if errors.Is(stored.Err, zkstate.ErrNoNode) {
		t.forget(id)
		return
	}
	known, err := fromNode(id, stored)
	if err != nil {
		t.log.WithError(err).Errorf("delegation token %s cannot be read, and lets nobody in", id)
		t.forget(id)
		return
	}
	t.hold(known)
}

func (t *tokens) hold(known token.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := &heldToken{Token: known}
	if before := t.mu.byID[known.ID]; before != nil {
		held.hmac, held.credentials = before.hmac, before.credentials
	} else {
		hmac := t.secret.HMAC(known.ID)
		held.hmac, held.credentials = string(hmac), credentialsOf(hmac)
	}
	t.mu.byID[known.ID], t.mu.byHMAC[held.hmac] = held, held
}

func (t *tokens) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if held := t.mu.byID[id]; held != nil {
		delete(t.mu.byID, id)
		delete(t.mu.byHMAC, held.hmac)
	}
}

// credentialsOf are what SCRAM has to know of a password that is the HMAC in base64. Every broker makes its own, with a salt of its own.
func credentialsOf(hmac []byte) map[string]func() auth.Credential {
	of := map[string]func() auth.Credential{}
	for _, m := range []admin.ScramMechanism{admin.ScramSHA256, admin.ScramSHA512} {
		of[m.String()] = sync.OnceValue(func() auth.Credential {
			salt := []byte(rand.Text())
			salted, err := admin.SaltPassword(m, base64Text(hmac), salt, auth.LeastIterations)
			if err != nil {
				return auth.Credential{} // lets nobody in; only a nonsensical length or count makes it
			}
			return auth.Credential(admin.NewScramCredential(m, salt, salted, auth.LeastIterations))
		})
	}
	return of
}

// lookup finds tokens for a mechanism; nil where there are none.
func (t *tokens) lookup(mechanism string) func(id string) (auth.Token, bool) {
	if t == nil {
		return nil
	}
	return func(id string) (auth.Token, bool) {
		t.mu.RLock()
		held := t.mu.byID[id]
		t.mu.RUnlock()
		if held == nil {
			return auth.Token{}, false
		}
		return auth.Token{Credential: held.credentials[mechanism](), Owner: held.Owner.Name, Expires: time.UnixMilli(held.Expires)}, true
	}
}

// All implements api.Tokens.
func (t *tokens) All() []token.Token {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]token.Token, 0, len(t.mu.byID))
	for _, held := range t.mu.byID {
		all = append(all, held.Token)
	}
	slices.SortFunc(all, func(a, b token.Token) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// HMAC implements api.Tokens.
func (t *tokens) HMAC(id string) []byte { return t.secret.HMAC(id) }

// follow reads what notifications tell of, and everything in each new session, until ctx ends.
func (t *tokens) follow(ctx context.Context, events <-chan zkstate.Event) {
	follow(ctx, events, t.notified.dir, t.look)
}

// look leaves the watch before it reads, so that no change falls between. A session that is newer than what was read may have missed notifications: they are kept for a while only.
func (t *tokens) look(ctx context.Context) {
	_, session := t.zk.Session()
	news, err := t.notified.unseen(ctx)
	switch {
	case err != nil:
	case session != t.session:
		if err = t.load(ctx); err == nil {
			t.session = session
		}
	default:
		ids := make([]string, len(news))
		for i, id := range news {
			ids[i] = string(id)
		}
		err = t.reread(ctx, ids...)
	}
	if err != nil && ctx.Err() == nil {
		t.log.WithError(err).Error("following delegation tokens; a new session will read them again")
	}
}

// fromNode reads the principals of a node.
func fromNode(id string, stored zkstate.StoredToken) (token.Token, error) {
	if stored.Err != nil {
		return token.Token{}, stored.Err
	}
	if stored.ID != id {
		return token.Token{}, fmt.Errorf("it names itself %q", stored.ID)
	}
	t := token.Token{ID: id, Issued: stored.IssuedMs, Expires: stored.ExpiresMs, Latest: stored.ExpiresAtMs, Renewers: make([]acl.Principal, len(stored.Renewers))}
	var errs [3]error
	t.Owner, errs[0] = acl.ParsePrincipal(stored.Owner)
	t.Requester, errs[1] = acl.ParsePrincipal(stored.Requester)
	for i, r := range stored.Renewers {
		var err error
		if t.Renewers[i], err = acl.ParsePrincipal(r); err != nil {
			errs[2] = err
		}
	}
	return t, errors.Join(errs[:]...)
}

// node is what a token is written as. A requester who is not the owner can be told in version 3 alone, which Kafka before 3.3 cannot read.
func (t *tokens) node(known token.Token) zkstate.Token {
	n := zkstate.Token{
		Version: t.version, ID: known.ID, Owner: known.Owner.String(), Requester: known.Requester.String(),
		IssuedMs: known.Issued, ExpiresMs: known.Expires, ExpiresAtMs: known.Latest,
	}
	if known.Requester != known.Owner {
		n.Version = zkstate.TokenVersion3
	}
	for _, r := range known.Renewers {
		n.Renewers = append(n.Renewers, r.String())
	}
	return n
}
