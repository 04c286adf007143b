package console

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"barnabas/admin/cluster"
	"barnabas/admin/health"
	"barnabas/tools/native"
)

// apiPaths answer with the documents of the native tools, so that what reads `barnabas ... -o json` reads these.
var apiPaths = map[string]func(ctx context.Context, c *Console) (document any, code int, err error){
	"/api/v1/cluster": func(ctx context.Context, c *Console) (any, int, error) {
		s, err := c.snapshot(ctx, time.Second)
		if err != nil {
			return nil, 0, err
		}
		return native.BrokersDocument(s), http.StatusOK, nil
	},
	"/api/v1/topics": func(ctx context.Context, c *Console) (any, int, error) {
		s, err := c.snapshot(ctx, time.Second)
		if err != nil {
			return nil, 0, err
		}
		return native.TopicsDocument(s.Topics), http.StatusOK, nil
	},
	"/api/v1/groups": func(ctx context.Context, c *Console) (any, int, error) {
		g, err := c.allGroups(ctx, time.Second)
		if err != nil {
			return nil, 0, err
		}
		return native.GroupsDocument(g.listed, g.described, g.partitions, g.failures), http.StatusOK, nil
	},
	"/api/v1/health": func(ctx context.Context, c *Console) (any, int, error) {
		s, err := c.snapshot(ctx, time.Second)
		if err != nil {
			return nil, 0, err
		}
		findings, counts := health.Examine(s)
		code := http.StatusOK
		if !health.Healthy(findings) {
			code = http.StatusServiceUnavailable
		}
		return native.VerdictDocument(s, findings, counts), code, nil
	},
}

// apiFault is why there is no document.
type apiFault struct {
	Version     int    `json:"version"`
	Error       string `json:"error"`
	Unreachable bool   `json:"unreachable"`
}

func (c *Console) serveAPI(answer func(ctx context.Context, c *Console) (any, int, error)) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request, _ user) {
		document, code, err := answer(r.Context(), c)
		if err != nil {
			document, code = apiFault{1, err.Error(), cluster.IsUnreachable(err)}, statusOf(err)
		}
		text, err := json.MarshalIndent(document, "", "  ")
		if err != nil {
			plain(w, http.StatusInternalServerError, "the answer could not be made")
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(code)
		_, _ = w.Write(append(text, '\n')) // who has gone needs no answer
	}
}
