package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/acl"
	"barnabas/zkstate"
)

// ACLs are the access lists of the cluster as AclAuthorizer keeps them: all of them in memory, each change written with
// the version that it was made from, and told to the other brokers.
type ACLs struct {
	zk     *zkstate.Client
	policy acl.Policy
	table  atomic.Pointer[acl.Table]

	mu struct { // held over a change, so that what is read and what was changed here come in an order
		sync.Mutex
		versions map[acl.Pattern]int32 // of those in the table
	}
}

// NewACLs makes an empty ACLs; Load fills it.
func NewACLs(zk *zkstate.Client, policy acl.Policy) *ACLs {
	a := &ACLs{zk: zk, policy: policy}
	a.mu.versions = map[acl.Pattern]int32{}
	return a
}

// Allows tells whether somebody may do an operation on a resource.
func (a *ACLs) Allows(who acl.Subject, op kmsg.ACLOperation, resource kmsg.ACLResourceType, name string) bool {
	return a.policy.Allows(a.table.Load(), who, op, resource, name)
}

// AllowsAny tells whether there can be a resource of the type on which somebody may do the operation.
func (a *ACLs) AllowsAny(who acl.Subject, op kmsg.ACLOperation, resource kmsg.ACLResourceType) bool {
	return a.policy.AllowsAny(a.table.Load(), who, op, resource)
}

// Load makes the directories and reads everything.
func (a *ACLs) Load(ctx context.Context) error {
	if err := a.zk.MakeACLPaths(ctx); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	all, err := a.zk.ACLs(ctx)
	if err != nil {
		return err
	}
	changes, versions := make(map[acl.Pattern][]acl.Entry, len(all)), make(map[acl.Pattern]int32, len(all))
	for r, found := range all {
		p := patternOf(r)
		changes[p], versions[p] = entriesOf(found.Entries), found.Version
	}
	table, err := (*acl.Table)(nil).With(changes)
	if err != nil {
		return fmt.Errorf("reading access lists: %w", err)
	}
	a.table.Store(table)
	a.mu.versions = versions
	return nil
}

// Reread reads the entries of one pattern, of which another broker has told that they changed.
func (a *ACLs) Reread(ctx context.Context, r zkstate.Resource) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, err := a.zk.ACL(ctx, r)
	if err != nil {
		return err
	}
	return a.learnLocked(patternOf(r), entriesOf(found.Entries), found.Version)
}

func (a *ACLs) learnLocked(p acl.Pattern, entries []acl.Entry, version int32) error {
	table, err := a.table.Load().With(map[acl.Pattern][]acl.Entry{p: entries})
	if err != nil {
		return err
	}
	a.table.Store(table)
	if version == zkstate.NoACLVersion || len(entries) == 0 {
		delete(a.mu.versions, p)
	} else {
		a.mu.versions[p] = version
	}
	return nil
}

// Find lists the bindings that a filter chooses.
func (a *ACLs) Find(f acl.Filter) []acl.Binding { return a.table.Load().Bindings(f) }

// Create adds bindings; the errors are in line with them. What is there already is no error.
func (a *ACLs) Create(ctx context.Context, bindings []acl.Binding) []error {
	errs := make([]error, len(bindings))
	at := map[acl.Pattern][]int{}
	for i, b := range bindings {
		if !writable(b) {
			errs[i] = failed(kerr.InvalidRequest, "Failed to create ACL")
			continue
		}
		at[b.Pattern] = append(at[b.Pattern], i)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range slices.SortedFunc(maps.Keys(at), acl.Pattern.Compare) {
		err := a.updateLocked(ctx, p, func(entries []acl.Entry) ([]acl.Entry, error) {
			for _, i := range at[p] {
				if _, err := acl.ParsePrincipal(bindings[i].Principal); err != nil {
					return nil, err
				}
				if !slices.Contains(entries, bindings[i].Entry) {
					entries = append(entries, bindings[i].Entry)
				}
			}
			return entries, nil
		})
		for _, i := range at[p] {
			errs[i] = err
		}
	}
	return errs
}

// writable tells whether a binding can be kept: a node's name holds no slash, and there must be words for all of it.
func writable(b acl.Binding) bool {
	return !strings.Contains(b.Name, "/") && b.Type.String() != unknown && b.Resource.String() != unknown &&
		b.Operation.String() != unknown && b.Permission.String() != unknown
}

const unknown = "UNKNOWN"

// DeletedACL is a binding that a filter chose for deletion; Err tells why it is still there.
type DeletedACL struct {
	acl.Binding
	Err error
}

// Delete removes the bindings that the filters choose, and lists for each filter those that it was the first to choose.
// A filter that leaves patterns open chooses among the patterns known here.
func (a *ACLs) Delete(ctx context.Context, filters []acl.Filter) [][]DeletedACL {
	a.mu.Lock()
	defer a.mu.Unlock()
	patterns := map[acl.Pattern]bool{}
	for _, p := range a.table.Load().Patterns() {
		patterns[p] = true
	}
	for _, f := range filters {
		for _, p := range f.Patterns() {
			patterns[p] = true
		}
	}
	results := make([][]DeletedACL, len(filters))
	for _, p := range slices.SortedFunc(maps.Keys(patterns), acl.Pattern.Compare) {
		chosen, err := a.deleteLocked(ctx, p, filters)
		for i, entries := range chosen {
			for _, e := range entries {
				results[i] = append(results[i], DeletedACL{Binding: acl.Binding{Pattern: p, Entry: e}, Err: err})
			}
		}
	}
	return results
}

// deleteLocked removes from one pattern what filters choose of it, and lists that by filter.
func (a *ACLs) deleteLocked(ctx context.Context, p acl.Pattern, filters []acl.Filter) ([][]acl.Entry, error) {
	if !slices.ContainsFunc(filters, func(f acl.Filter) bool { return f.MatchesPattern(p) }) {
		return nil, nil
	}
	chosen := make([][]acl.Entry, len(filters))
	seen := map[acl.Entry]bool{}
	err := a.updateLocked(ctx, p, func(entries []acl.Entry) ([]acl.Entry, error) {
		return slices.DeleteFunc(entries, func(e acl.Entry) bool {
			i := slices.IndexFunc(filters, func(f acl.Filter) bool { return f.MatchesPattern(p) && f.MatchesEntry(e) })
			if i >= 0 && !seen[e] { // another attempt finds it again
				seen[e] = true
				chosen[i] = append(chosen[i], e)
			}
			return i >= 0
		}), nil
	})
	return chosen, err
}

const (
	updateAttempts   = 11
	updatePause      = 100 * time.Millisecond
	updatePauseBound = 150 * time.Millisecond
)

// updateLocked changes the entries of a pattern and tells the brokers if they are others than before. It starts from what
// is known here; a change by somebody else, or a lost answer, makes it read them and start again.
func (a *ACLs) updateLocked(ctx context.Context, p acl.Pattern, change func([]acl.Entry) ([]acl.Entry, error)) error {
	r := resourceOf(p)
	version, known := a.mu.versions[p]
	entries := a.table.Load().Entries(p)
	for attempt := range updateAttempts {
		if attempt > 0 || !known {
			found, err := a.zk.ACL(ctx, r)
			if err != nil {
				return unavailable(err)
			}
			entries, version = entriesOf(found.Entries), found.Version
		}
		wanted, err := change(slices.Clone(entries))
		if err != nil {
			return err
		}
		written, err := a.zk.PutACL(ctx, r, zkstate.VersionedACL{Entries: nodeEntries(wanted), Version: version})
		switch {
		case err == nil:
			if err := a.learnLocked(p, wanted, written); err != nil {
				return err
			}
			if !slices.Equal(wanted, entries) {
				return unavailable(a.zk.NotifyACLChange(ctx, r))
			}
			return nil
		case !overtaken(err):
			return unavailable(err)
		}
		select {
		case <-time.After(updatePause + rand.N(updatePauseBound-updatePause)):
		case <-ctx.Done():
			return unavailable(ctx.Err())
		}
	}
	return fmt.Errorf("the access list of %s changed %d times while it was to be changed here", r.Path(), updateAttempts)
}

// overtaken tells whether a write came too late, or may have.
func overtaken(err error) bool {
	for _, target := range []error{zkstate.ErrBadVersion, zkstate.ErrNodeExists, zkstate.ErrNoNode, zkstate.ErrConnectionLoss} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// The words of ZooKeeper's nodes are those of the protocol in another case: ALTER_CONFIGS is AlterConfigs.

func patternOf(r zkstate.Resource) acl.Pattern {
	resource, _ := kmsg.ParseACLResourceType(string(r.Type))
	p := acl.Pattern{Resource: resource, Name: r.Name, Type: kmsg.ACLResourcePatternTypeLiteral}
	if r.Prefixed {
		p.Type = kmsg.ACLResourcePatternTypePrefixed
	}
	return p
}

func resourceOf(p acl.Pattern) zkstate.Resource {
	return zkstate.Resource{Type: zkstate.ResourceType(acl.Word(p.Resource.String())), Name: p.Name, Prefixed: p.Type == kmsg.ACLResourcePatternTypePrefixed}
}

// entriesOf reads a node's entries, each once. A word that is not known stays an entry that says nothing.
func entriesOf(from []zkstate.ACLEntry) []acl.Entry {
	var entries []acl.Entry
	seen := make(map[acl.Entry]bool, len(from))
	for _, f := range from {
		operation, _ := kmsg.ParseACLOperation(f.Operation)
		permission, _ := kmsg.ParseACLPermissionType(f.Permission)
		if e := (acl.Entry{Principal: f.Principal, Host: f.Host, Operation: operation, Permission: permission}); !seen[e] {
			seen[e] = true
			entries = append(entries, e)
		}
	}
	return entries
}

func nodeEntries(from []acl.Entry) []zkstate.ACLEntry {
	entries := make([]zkstate.ACLEntry, len(from))
	for i, e := range from {
		entries[i] = zkstate.ACLEntry{Principal: e.Principal, Host: e.Host, Operation: acl.Word(e.Operation.String()), Permission: acl.Word(e.Permission.String())}
	}
	return entries
}
