package broker

import "sync"

// tenure knows in which session this broker was made leader of the partitions of one topic. As long as that session lives the controller elects nobody in its place but on purpose, when somebody
// asks for another leader, and then tells it at once. A later session vouches for nothing that was before it.
type tenure struct {
	sessions sessions

	mu    sync.RWMutex
	since map[int32]int // generations of the session
}

// sessions are those of *zkstate.Client.
type sessions interface {
	Session() (id int64, generation int)
	Alive(generation int) bool
}

func newTenure(s sessions) *tenure { return &tenure{sessions: s, since: map[int32]int{}} }

func (t *tenure) began(p int32) {
	_, generation := t.sessions.Session()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since[p] = generation
}

func (t *tenure) ended(p int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.since, p)
}

// lasts tells whether nobody else can have been elected yet.
func (t *tenure) lasts(p int32) bool {
	t.mu.RLock()
	generation, leads := t.since[p]
	t.mu.RUnlock()
	return leads && t.sessions.Alive(generation)
}
