package quota

import "time"

// crowd are the accounts of clients that have a limit. Clients choose their names, so accounts that have run out are
// dropped as others come: one that is begun anew later says the same.
type crowd struct {
	accounts map[Client]*account
	sweepAt  int // so many accounts that the idle ones are looked for
}

const fewAccounts = 1000

// account is what those who share a limit took of one kind.
type account struct {
	rate   rate
	tokens bucket // of mutations alone
	pauses average
}

func newCrowd() crowd { return crowd{accounts: map[Client]*account{}, sweepAt: fewAccounts} }

// account finds a client's account or begins one.
func (m *crowd) account(w Windows, c Client, now time.Time) *account {
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

// idle tells that nothing counts any more of what the client took.
func (a *account) idle(w Windows, now time.Time) bool {
	return a.rate.idle(w, now) && a.pauses.times.idle(shown, now) && !now.Before(a.tokens.fullAt)
}
