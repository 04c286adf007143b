package ecosystem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// worker is a Connect worker and where it listens for requests.
type worker struct {
	*program
	addr string
}

// rest asks a worker for something once.
func (w *worker) rest(method, path string, body any) (status int, text []byte, err error) {
	var sent io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		sent = bytes.NewReader(encoded)
	}
	req, err := http.NewRequest(method, "http://"+w.addr+path, sent)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	asking := http.Client{Timeout: time.Minute}
	resp, err := asking.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

// must asks until it is granted: a worker refuses while the group rebalances, and does not know at once what another was told. What is answered is filled into answer, unless that is nil.
func (w *worker) must(t *testing.T, method, path string, body, answer any) {
	t.Helper()
	await(t, func() string {
		status, text, err := w.rest(method, path, body)
		if err != nil || status >= http.StatusMultipleChoices {
			return fmt.Sprintf("%s %s is answered %d: %s (%v)", method, path, status, text, err)
		}
		if answer != nil {
			require.NoError(t, json.Unmarshal(text, answer), "%s", text)
		}
		return ""
	}, w.program)
}

// connectorStatus is what a worker tells of a connector.
type connectorStatus struct {
	Connector connectorPart
	Tasks     []connectorPart
}

type connectorPart struct {
	State    string
	WorkerID string `json:"worker_id"`
	Trace    string
}

// awaitState waits until a connector and so many tasks of it are in a state, and returns its status.
func (w *worker) awaitState(t *testing.T, connector, state string, tasks int) (status connectorStatus) {
	t.Helper()
	await(t, func() string {
		status = connectorStatus{}
		w.must(t, http.MethodGet, "/connectors/"+connector+"/status", nil, &status)
		if len(status.Tasks) == tasks && status.Connector.State == state && !slices.ContainsFunc(status.Tasks, func(p connectorPart) bool { return p.State != state }) {
			return ""
		}
		return fmt.Sprintf("%s is not %s: %+v", connector, state, status)
	}, w.program)
	return status
}

// connectorOffsets are where a connector has come to in its sources, or its sinks' topics.
type connectorOffsets struct {
	Offsets []connectorOffset `json:"offsets"`
}

type connectorOffset struct {
	Partition map[string]any `json:"partition"`
	Offset    map[string]any `json:"offset"`
}

func (w *worker) offsets(t *testing.T, connector string) []connectorOffset {
	t.Helper()
	var answer connectorOffsets
	w.must(t, http.MethodGet, "/connectors/"+connector+"/offsets", nil, &answer)
	return answer.Offsets
}
