package native

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// sure asks whether what cannot be taken back is meant: the word has to be typed. Where nobody can be asked --yes has to have been given.
func (c *call) sure(what, word string) error {
	if c.Bool("yes") || c.Bool("dry-run") {
		return nil
	}
	if !isTerminal(c.App.Reader) || !isTerminal(c.App.ErrWriter) {
		return wrongUsage("%s cannot be taken back: --yes does it without asking, --dry-run shows it", what)
	}
	fmt.Fprintf(c.App.ErrWriter, "%s cannot be taken back. Type %s to go on: ", what, word)
	answer, _ := bufio.NewReader(io.LimitReader(c.App.Reader, 1<<10)).ReadString('\n')
	if strings.TrimSpace(answer) != word {
		return errors.New("it was not confirmed; nothing was changed")
	}
	return nil
}

// isTerminal tells whether somebody may sit at a stream.
func isTerminal(stream any) bool {
	file, isFile := stream.(*os.File)
	if !isFile {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
