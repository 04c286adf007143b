package quota

import "time"

// Kind is what is limited.
type Kind int8

const (
	Produce  Kind = iota // producer_byte_rate: whole produce requests, in bytes per second
	Fetch                // consumer_byte_rate: records in answers to fetches of consumers, in bytes per second
	Request              // request_percentage: the time that requests keep a goroutine, in nanoseconds per second
	Mutation             // controller_mutation_rate: partitions created and deleted, per second
	kinds
)

// Keys are the names of the kinds as configuration has them.
var Keys = [kinds]string{Produce: "producer_byte_rate", Fetch: "consumer_byte_rate", Request: "request_percentage", Mutation: "controller_mutation_rate"}

// Unit is how many units of its kind the number stands for that configuration and metrics have.
func (k Kind) Unit() float64 {
	if k == Request {
		return float64(time.Second / 100)
	}
	return 1
}

// Part is a user or a client id in the name of a limit.
type Part struct {
	kind partKind
	name string
}

type partKind int8

const (
	absent partKind = iota
	anybody
	named
)

// Anybody is the default of users or of client ids: who has no limit by name.
var Anybody = Part{kind: anybody}

// Named is one user or client id.
func Named(name string) Part { return Part{kind: named, name: name} }

// Entity is whom a limit is for; a zero Part is not part of it.
type Entity struct{ User, Client Part }

// Client is who is limited: the name of the principal without its type, and the client id, which may be
// empty.
type Client struct{ User, ID string }

// Limits are the limits of one kind, in units per second.
type Limits map[Entity]float64

// of finds the limit of a client, and who shares it: all connections that give the same answer are counted together.
// The most particular limit counts, and one for anybody's client id less than one for the user it belongs to
// (KIP-55). A client without an id has only the limits of users.
func (l Limits) of(c Client) (limit float64, shared Client, found bool) {
	user, id := Named(c.User), Named(c.ID)
	look := func(e Entity, s Client) bool {
		if !found {
			limit, found = l[e]
			shared = s
		}
		return found
	}
	if c.ID == "" {
		_ = look(Entity{User: user}, c) || look(Entity{User: Anybody}, c)
		return limit, shared, found
	}
	alone := Client{User: c.User}
	_ = look(Entity{user, id}, c) ||
		look(Entity{user, Anybody}, c) ||
		look(Entity{User: user}, alone) ||
		look(Entity{Anybody, id}, c) ||
		look(Entity{Anybody, Anybody}, c) ||
		look(Entity{User: Anybody}, alone) ||
		look(Entity{Client: id}, Client{ID: c.ID}) ||
		look(Entity{Client: Anybody}, Client{ID: c.ID})
	return limit, shared, found
}
