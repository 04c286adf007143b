//go:build unix

package native

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// hideTyping has a terminal show nothing of what is typed, until restore is called. Interrupted meanwhile, the process would leave a terminal that shows nothing, so it restores it first.
func hideTyping(terminal *os.File) (restore func(), err error) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetTermios(fd, readTerminal)
	if err != nil {
		return nil, err
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, writeTerminal, &hidden); err != nil {
		return nil, err
	}
	interrupted, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(interrupted, os.Interrupt, unix.SIGTERM)
	show := func() { _ = unix.IoctlSetTermios(fd, writeTerminal, before) }
	go func() {
		select {
		case <-interrupted:
			show()
			os.Exit(int(Failed))
		case <-done:
		}
	}()
	return func() {
		signal.Stop(interrupted)
		close(done)
		show()
	}, nil
}
