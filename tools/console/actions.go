package console

import "net/http"

type action struct{ path string }

func allActions() []action { return nil }

func (c *Console) serveForm(http.ResponseWriter, *http.Request, user)   {}
func (c *Console) serveAction(http.ResponseWriter, *http.Request, user) {}
