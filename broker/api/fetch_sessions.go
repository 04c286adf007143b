package api

type fetchSessions struct{}

func newFetchSessions(slots int) *fetchSessions { return &fetchSessions{} }
