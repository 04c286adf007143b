package quota

import "time"

// crowd are the accounts of those who have a limit. Clients choose their names, and addresses are many, so accounts
// that have run out are dropped as others come: one that is begun anew later says the same.
type crowd[K comparable] struct {
	accounts map[K]*account
	sweepAt  int // so many accounts that the idle ones are looked for
}

const fewAccounts = 1000

// account is what those who share a limit took of one kind.
type account struct {
	rate   rate
	tokens bucket // of mutations alone
	pauses average
}

func newCrowd[K comparable]() crowd[K] {
	return crowd[K]{accounts: map[K]*account{}, sweepAt: fewAccounts}
}

// account finds the account of one or begins it.
func (m *crowd[K]) account(w Windows, c K, now time.Time) *account {
	if a := m.accounts[c]; a != nil {
		return a
	}
	if len(m.accounts) >= m.sweepAt {
		for name, a := range m.accounts {
			if a.idle(w, now) {
				delete(m.accounts, name)
			}
		}
		m.sweepAt = max(fewAccounts, 2*len(m.accounts))
	}
	a := &account{}
	m.accounts[c] = a
	return a
}

// idle tells that nothing counts any more of what was taken.
func (a *account) idle(w Windows, now time.Time) bool {
	return a.rate.idle(w, now) && a.pauses.times.idle(shown, now) && !now.Before(a.tokens.fullAt)
}
