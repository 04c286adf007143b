package quorum

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// How an ensemble begins, and how a server finds out that it has begun without it.
//
// A server with an empty disk asks all others. When all of them have empty disks too, they are an ensemble from now on; each finds
// that out by itself, and they all find the same. Whoever has a tree already, from a time when it stood alone, is the one that begins,
// else the one with the largest id, as ZooKeeper's first leader; the others get their state from it. So the first start needs all servers, once.
//
// When others are an ensemble already and know another disk under this server's id, this one was emptied or replaced. See reinstate.go.

// verdict is what a server with an empty disk makes of what the others say.
type verdict struct {
	of      ensemble // not zero: the ensemble that this server is of, or is to be taken into
	first   bool     // it begins the ensemble
	member  bool     // the ensemble knows this disk
	refused string   // it can never be: why
	missing []uint64 // else: who was not heard
}

// judge decides for a server with an empty disk, from the hellos of the others. The hellos of those who did not answer are missing.
func judge(mine hello, heard map[uint64]hello) verdict {
	for _, id := range slices.Sorted(maps.Keys(heard)) {
		if h := heard[id]; !slices.Equal(h.Members, mine.Members) {
			return verdict{refused: fmt.Sprintf("server %d's file names the servers %v, this one's %v", id, h.Members, mine.Members)}
		}
	}
	full := []uint64{}
	disks := map[uint64]string{mine.From: mine.Disk}
	if mine.Full {
		full = append(full, mine.From)
	}
	var missing []uint64
	for _, id := range mine.Members {
		if id == mine.From {
			continue
		}
		h, ok := heard[id]
		switch {
		case !ok:
			missing = append(missing, id)
		case h.Of.ID != "":
			member := h.Of.Disks[mine.From] == mine.Disk
			if !member && mine.Full {
				return verdict{refused: fmt.Sprintf("this server has a tree of its own, and the others are an ensemble without it: to join them it needs an empty dataDir (server %d was asked)", id)}
			}
			return verdict{of: h.Of, member: member, first: member && h.Of.First == mine.From && h.Of.founders()}
		default:
			disks[id] = h.Disk
			if h.Full {
				full = append(full, id)
			}
		}
	}
	switch {
	case len(full) > 1:
		slices.Sort(full)
		return verdict{refused: fmt.Sprintf("servers %v have trees of their own: an ensemble begins with one tree at the most, the others need an empty dataDir", full)}
	case len(missing) > 0:
		return verdict{missing: missing}
	}
	first := slices.Max(mine.Members)
	if len(full) == 1 {
		first = full[0]
	}
	return verdict{of: ensemble{ID: name(disks), Disks: disks, First: first}, member: true, first: first == mine.From}
}

// founders: its disks are those that began it. Nobody comes or goes before the first has begun, so whoever was taken in is never the first, also not in its place:
// it lacks the state that the others' log goes on from.
func (e ensemble) founders() bool { return e.ID == name(e.Disks) }

// name is the same for all founders: it comes from their disks.
func name(disks map[uint64]string) string {
	var all strings.Builder
	for _, id := range slices.Sorted(maps.Keys(disks)) {
		fmt.Fprintf(&all, "%d %s\n", id, disks[id])
	}
	sum := sha256.Sum256([]byte(all.String()))
	return hex.EncodeToString(sum[:16])
}

// askEvery is how often a server with an empty disk asks the others.
const askEvery = 300 * time.Millisecond

// join asks until this server is of an ensemble, or ctx ends, or it can never be, which is the error.
func (m *Member) join(ctx context.Context) error {
	said := ""
	for m.identity().Of.ID == "" {
		mine := m.identity()
		v := judge(mine, m.askAll(mine))
		switch {
		case v.refused != "":
			return fmt.Errorf("%s", v.refused)
		case v.member:
			if err := m.found(v); err != nil {
				return err
			}
			continue
		}
		news := fmt.Sprintf("An ensemble begins when all its servers are there; waiting for %v", v.missing)
		if v.of.ID != "" {
			news = "The ensemble knows another disk of this server, which was emptied or replaced; waiting to be taken in anew by its leader"
		}
		if news != said {
			m.cfg.Log.Info(news)
			said = news
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(askEvery):
		}
	}
	return nil
}

// found makes this disk one of an ensemble.
func (m *Member) found(v verdict) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.store.found(v.of, v.first); err != nil {
		return err
	}
	m.mu.me.Of = v.of
	return nil
}

// askAll hears all others at once.
func (m *Member) askAll(mine hello) map[uint64]hello {
	mine.Ask = true
	type answer struct {
		id uint64
		h  hello
		ok bool
	}
	answers := make(chan answer)
	asked := 0
	for id, addr := range m.cfg.Servers {
		if id == m.cfg.ID {
			continue
		}
		asked++
		go func() {
			q := mine
			q.To = id
			nc, h, err := greet(addr, q)
			if err == nil {
				_ = nc.Close()
			}
			answers <- answer{id, h, err == nil && h.From == id}
		}()
	}
	heard := map[uint64]hello{}
	for range asked {
		if a := <-answers; a.ok {
			heard[a.id] = a.h
		}
	}
	return heard
}
