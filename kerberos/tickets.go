package kerberos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	krb5 "github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Account is as whom a client goes to services.
type Account struct {
	// ConfigFile is where krb5.conf lies.
	ConfigFile string
	// Cache is a file with tickets that somebody else gets and renews, as kinit does; "" for none. It comes before the key table.
	Cache string
	// Principal is who the client is, by keys of KeyTable; "" for none.
	Principal, KeyTable string
	// RenewAfter is after which part of its life a ticket is renewed; 0: 0.8, as Java's clients of Kafka and ZooKeeper do it.
	RenewAfter float64
	Now        func() time.Time
}

// Tickets gets tickets when they are wanted, and keeps them for as long as they are good. Nothing runs in between. It may be used by many at a time.
type Tickets struct {
	account Account
	busy    chan struct{} // one at a time
	granter Ticket        // for the service that gives tickets
	held    map[Name]held
}

// held is a ticket that is good until its end, and from when on a newer one is wanted.
type held struct {
	Ticket
	renew time.Time
}

const (
	renewAfter = 0.8
	renewPause = time.Minute // after a renewal that failed: who waits for it would hold up everybody
)

// NewTickets has no ticket yet.
func NewTickets(a Account) *Tickets {
	if a.RenewAfter == 0 {
		a.RenewAfter = renewAfter
	}
	return &Tickets{account: a, busy: make(chan struct{}, 1), held: map[Name]held{}}
}

// Login gets the ticket by which others are got, so that who is not known learns it early.
func (t *Tickets) Login(ctx context.Context) error {
	if err := t.lock(ctx); err != nil {
		return err
	}
	defer t.unlock()
	door, err := t.login()
	if err == nil {
		door.Destroy()
	}
	return err
}

// For gives a ticket for a service on a host. One that is good for a while yet is given when no newer one can be had. An exchange that has begun is not broken off when ctx ends: it is over
// when the servers of the realm have answered, or not, for 5 s each.
func (t *Tickets) For(ctx context.Context, service, host string) (Ticket, error) {
	if err := t.lock(ctx); err != nil {
		return Ticket{}, err
	}
	defer t.unlock()
	name := Name{Primary: service, Instance: host}
	mine, now := t.held[name], t.account.Now()
	if now.Before(mine.renew) && now.Before(mine.end) {
		return mine.Ticket, nil
	}
	ticket, err := t.get(name)
	switch {
	case err == nil:
		mine = held{ticket, t.renewal(ticket)}
	case now.Before(mine.end):
		mine.renew = now.Add(renewPause)
	default:
		return Ticket{}, fmt.Errorf("Kerberos: a ticket for %s/%s: %w", service, host, err)
	}
	t.held[name] = mine
	return mine.Ticket, nil
}

func (t *Tickets) lock(ctx context.Context) error {
	select {
	case t.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Tickets) unlock() { <-t.busy }

// renewal is from when on a newer ticket is wanted.
func (t *Tickets) renewal(of Ticket) time.Time {
	return of.start.Add(time.Duration(float64(of.end.Sub(of.start)) * t.account.RenewAfter))
}

// get asks for a ticket.
func (t *Tickets) get(service Name) (Ticket, error) {
	door, err := t.login()
	if err != nil {
		return Ticket{}, err
	}
	defer door.Destroy() // or it would go on to renew what it found on the way to another realm
	var ticket Ticket
	err = guarded(func() error {
		realm, granter := door.Config.ResolveRealm(service.Instance), t.granter
		if realm == "" {
			realm = granter.realm
		}
		if realm != granter.realm { // its own granter of tickets knows the service
			if granter, err = granter.exchange(door, granterOf(realm), granter.realm); err != nil {
				return err
			}
		}
		ticket, err = granter.exchange(door, service.principal(), realm)
		return err
	})
	return ticket, err
}

// exchange gets a ticket by this one, which is for the granter of tickets of a realm.
func (t Ticket) exchange(door *client.Client, service types.PrincipalName, realm string) (Ticket, error) {
	_, reply, err := door.TGSREQGenerateAndExchange(service, realm, t.ticket, t.key, false)
	if err != nil {
		return Ticket{}, err
	}
	part := reply.DecryptedEncPart
	return newTicket(reply.Ticket, part.Key, t.client, t.realm, part.AuthTime, part.StartTime, part.EndTime), nil
}

func newTicket(ticket messages.Ticket, key types.EncryptionKey, client types.PrincipalName, realm string, made, start, end time.Time) Ticket {
	if start.Before(made) { // it has no start of its own
		start = made
	}
	return Ticket{ticket: ticket, key: key, client: client, realm: realm, start: start, end: end}
}

func granterOf(realm string) types.PrincipalName {
	return types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", realm}}
}

// login makes the client by which the servers of the realm are asked, and sees to its ticket. A client is made for each question: the library's are not made for many at a time, and the files
// may have changed.
func (t *Tickets) login() (door *client.Client, err error) {
	conf, err := settings(t.account.ConfigFile)
	if err != nil {
		return nil, err
	}
	askForModern(conf)
	if t.account.Cache != "" {
		err = guarded(func() error { door, err = t.fromCache(conf); return err })
		if err == nil {
			return door, nil
		}
		err = fmt.Errorf("%s: %w", t.account.Cache, err)
	}
	if t.account.KeyTable != "" {
		err = guarded(func() error { door, err = t.fromKeys(conf); return err })
	}
	return door, err
}

func (t *Tickets) fromCache(conf *krb5.Config) (*client.Client, error) {
	cache, err := credentials.LoadCCache(t.account.Cache)
	if err != nil {
		return nil, err
	}
	door, err := client.NewFromCCache(cache, conf)
	if err != nil {
		return nil, err
	}
	realm := cache.GetClientRealm()
	owner, err := nameOf(cache.GetClientPrincipalName(), realm)
	if err != nil {
		return nil, err
	}
	if wanted := t.account.Principal; wanted != "" {
		if name, err := ParseName(wanted, conf.LibDefaults.DefaultRealm); err != nil || name != owner {
			return nil, fmt.Errorf("has tickets of %s, not of %s", owner, wanted)
		}
	}
	found, _ := cache.GetEntry(granterOf(realm)) // or there would be no client
	var ticket messages.Ticket
	if err := ticket.Unmarshal(found.Ticket); err != nil {
		return nil, err
	}
	if now := t.account.Now(); !now.Before(found.EndTime) {
		return nil, fmt.Errorf("the ticket of %s expired at %s: kinit gets another", owner, found.EndTime.UTC().Format(time.RFC3339))
	}
	t.granter = newTicket(ticket, found.Key, cache.GetClientPrincipalName(), realm, found.AuthTime, found.StartTime, found.EndTime)
	return door, nil
}

func (t *Tickets) fromKeys(conf *krb5.Config) (*client.Client, error) {
	name, err := ParseName(t.account.Principal, conf.LibDefaults.DefaultRealm)
	if err != nil {
		return nil, err
	}
	file := keyTable{file: t.account.KeyTable}
	if err := file.check(name); err != nil {
		return nil, err
	}
	door := client.NewWithKeytab(name.local(), name.Realm, file.table, conf, client.DisablePAFXFAST(true)) // which is not used, and some servers answer it oddly
	own := t.granter.realm == name.Realm && t.granter.client.Equal(name.principal())                       // or it is from a cache that was there before
	if own && t.account.Now().Before(t.renewal(t.granter)) {
		return door, nil
	}
	request, err := messages.NewASReqForTGT(name.Realm, conf, door.Credentials.CName())
	if err != nil {
		return nil, err
	}
	reply, err := door.ASExchange(name.Realm, request, 0)
	if err != nil {
		if own && t.account.Now().Before(t.granter.end) {
			return door, nil
		}
		return nil, fmt.Errorf("%s: %w", name, readable(err))
	}
	part := reply.DecryptedEncPart
	t.granter = newTicket(reply.Ticket, part.Key, door.Credentials.CName(), name.Realm, part.AuthTime, part.StartTime, part.EndTime)
	return door, nil
}

// readable is an error of the library in one line.
func readable(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}
