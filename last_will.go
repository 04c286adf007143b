package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v2"

	"barnabas/config"
	"barnabas/zkstate"
)

// A broker that is killed leaves its ZooKeeper session behind, and until that times out nobody leads what it led. So a second process, the executor, waits at the end of a pipe whose other end only the
// broker holds, and ends the session when the pipe breaks.
//
// The kernel closes the broker's end when the broker is gone, however it went, and not before: nobody lives by the session then. So the broker must never close it, nor let the garbage collector do so,
// while it lives (revoke ends the executor first). What ends both at once (a power cut, a container that is killed) is waited for by the session's timeout, as without a will.

const (
	lastWillWord  = "last-will"
	willWithin    = time.Second            // in which the executor has to take what it is told
	willTriesEach = 200 * time.Millisecond // while ZooKeeper cannot be reached
)

// testament is what the executor is told, a line of JSON whenever a session began. The last whole line counts.
type testament struct {
	Settings map[string]string `json:"settings"` // the broker's of ZooKeeper, as they were set
	Session  int64             `json:"session"`
	Password []byte            `json:"password"`
}

// lastWill is the broker's side.
type lastWill struct {
	executor *exec.Cmd
	gone     chan struct{} // closed when the executor has ended
	pipe     *os.File
	settings map[string]string
	log      *logrus.Entry
}

// makeWill starts the executor. A broker that cannot have one, or has none by its configuration, goes without.
func makeWill(v *config.Values, log *logrus.Entry) *lastWill {
	if !v.Bool("barnabas.last.will.enable") {
		return nil
	}
	will, err := startExecutor(v, log)
	if err != nil {
		log.WithError(err).Warn("there is no last will: if this process is killed, its partitions have no leader until its ZooKeeper session times out")
		return nil
	}
	return will
}

func startExecutor(v *config.Values, log *logrus.Entry) (*lastWill, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	end, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer end.Close()
	w := &lastWill{executor: exec.Command(self, lastWillWord), gone: make(chan struct{}), pipe: pipe, settings: map[string]string{}, log: log}
	w.executor.Stdin = end
	if err := w.executor.Start(); err != nil {
		return nil, errors.Join(err, pipe.Close())
	}
	go func() {
		defer close(w.gone)
		_ = w.executor.Wait()
	}()
	for _, name := range v.Names() {
		if strings.HasPrefix(name, "zookeeper.") {
			w.settings[name] = v.String(name)
		}
	}
	return w, nil
}

// bequeath makes the session the one that is to end with this process.
func (w *lastWill) bequeath(key zkstate.SessionKey) {
	line, err := json.Marshal(testament{Settings: w.settings, Session: key.ID, Password: key.Password})
	if err == nil {
		err = w.pipe.SetWriteDeadline(time.Now().Add(willWithin))
	}
	if err == nil {
		_, err = w.pipe.Write(append(line, '\n'))
	}
	if err != nil {
		w.log.WithError(err).Warn("the last will is not up to date: if this process is killed, its ZooKeeper session has to time out")
	}
}

// revoke ends the executor: the broker has stopped, and closed its session itself.
func (w *lastWill) revoke() {
	if w == nil {
		return
	}
	_ = w.executor.Process.Kill()
	<-w.gone
	_ = w.pipe.Close()
}

func lastWillCommand() *cli.Command {
	return &cli.Command{
		Name:   lastWillWord,
		Usage:  "ends the ZooKeeper session of the broker that started it, when that broker is gone",
		Hidden: true,
		Action: func(*cli.Context) error {
			signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // meant for the broker, which may take its time to stop
			debug.SetGCPercent(20)
			last, err := awaitEnd(os.Stdin)
			if err != nil {
				return err
			}
			return last.execute()
		},
	}
}

// awaitEnd returns what counts when the broker is gone.
func awaitEnd(pipe io.Reader) (last testament, err error) {
	lines := bufio.NewReader(pipe)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a line that was cut short is not whole
			return last, nil
		}
		if err != nil {
			return last, err
		}
		last = testament{}
		if err := json.Unmarshal(line, &last); err != nil {
			return last, fmt.Errorf("a last will cannot be read: %w", err)
		}
	}
}

// execute ends the session. It goes on trying for as long as the session may last.
func (t testament) execute() error {
	if t.Session == 0 {
		return nil
	}
	v, err := config.New(t.Settings)
	if err != nil {
		return err
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	cfg, err := zooKeeper(v, logrus.NewEntry(log))
	if err != nil {
		return err
	}
	zk, err := zkstate.Connect(cfg)
	if err != nil {
		return err
	}
	defer zk.Close()
	ctx, cancel := context.WithTimeout(context.Background(), cfg.SessionTimeout)
	defer cancel()
	for {
		_, err := zk.EndSession(ctx, zkstate.SessionKey{ID: t.Session, Password: t.Password})
		if err == nil {
			return nil
		}
		select {
		case <-time.After(willTriesEach):
		case <-ctx.Done():
			return err
		}
	}
}
