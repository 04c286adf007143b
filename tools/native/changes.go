package native

import (
	"fmt"
	"io"
)

// changes is what a command that alters has done, or with --dry-run would do.
type changes struct {
	Version int      `json:"version"`
	DryRun  bool     `json:"dry_run"`
	Changes []change `json:"changes"`
}

type change struct {
	Kind   string  `json:"kind"` // topic or group
	Name   string  `json:"name"`
	Action string  `json:"action"`
	What   string  `json:"what"`
	From   *string `json:"from"`
	To     *string `json:"to"`
	Done   bool    `json:"done"`
	Error  *string `json:"error"`
}

func (c *changes) show(w io.Writer) {
	rows := [][]string{{"KIND", "NAME", "ACTION", "WHAT", "FROM", "TO", "RESULT"}}
	for _, one := range c.Changes {
		result := "not done"
		switch {
		case one.Error != nil:
			result = "failed: " + *one.Error
		case one.Done:
			result = "done"
		case c.DryRun:
			result = "would be done"
		}
		rows = append(rows, []string{one.Kind, one.Name, one.Action, orDash(one.What), text(one.From), text(one.To), result})
	}
	columns(w, rows)
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func words(format string, args ...any) *string {
	s := fmt.Sprintf(format, args...)
	return &s
}

// result notes what became of a change, and returns the error.
func (c *changes) result(one change, err error) error {
	if one.Done = err == nil && !c.DryRun; err != nil {
		one.Error = words("%v", err)
	}
	c.Changes = append(c.Changes, one)
	return err
}

// exitOfFirst is the exit code of the first of several results that failed. What is wrong with each stands in the document.
func exitOfFirst(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return exitOf(err)
		}
	}
	return nil
}
