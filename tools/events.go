package tools

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// eventLog tells what happens as JSON objects, one a line, as the verifiable tools do.
type eventLog struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *eventLog) tell(what any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "%s\n", plainJSON(what))
}

// event is what each line begins with. The fields of all lines are in the order of the originals'.
type event struct {
	Timestamp int64  `json:"timestamp"`
	Name      string `json:"name"`
}

func now(name string) event { return event{time.Now().UnixMilli(), name} }
