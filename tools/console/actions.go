package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// An action has three steps, each a page of its own, so that all of them work without script: a form, a preview of what would become of it with the equal command line, and the deed. What is
// done is what was previewed: the preview's form carries it all, and the brokers check it once more. Each deed is an event, with who did it.

// action is one thing that can be done.
type action struct {
	path, title string
	danger      bool
	fields      func(ctx context.Context, c *Console, in url.Values) ([]field, error)
	preview     func(ctx context.Context, c *Console, in url.Values) (*preview, error)
	do          func(ctx context.Context, c *Console, in url.Values) (done string, err error)
	back        func(in url.Values) string // where to go afterwards
}

// allActions is the table of actions.
func allActions() []action {
	return []action{
		electAction(),
		createTopicAction(), topicConfigAction(), addPartitionsAction(), deleteTopicAction(),
		resetOffsetsAction(), deleteGroupAction(),
	}
}

// field is one input of a form.
type field struct {
	Name, Label, Help, Value string
	Kind                     string   // text, number, lines, choice or fixed
	Choices                  []string // of a choice
}

// preview is what would be done.
type preview struct {
	Sentence string
	Heading  []string
	Rows     [][]string
	Warnings []string
	Commands []string          // that would do the same
	Carry    map[string]string // what the deed needs beside the form's fields
	Type     string            // what has to be typed before it is done; "" is nothing
}

const mostPreviewRows = 1000

// actionData is what the template of all steps is given.
type actionData struct {
	Action  string
	Danger  bool
	Fields  []field
	Hidden  map[string]string
	Preview *preview
	Fault   string
	Token   string
	Back    string
	More    int // rows that are not shown
}

func (c *Console) serveForm(w http.ResponseWriter, r *http.Request, who user) {
	a := c.actions[r.URL.Path]
	in := r.URL.Query()
	fields, err := a.fields(r.Context(), c, in)
	q := question{path: r.URL.Path, values: in, who: who}
	if err != nil {
		c.serveFault(w, q, statusOf(err), err)
		return
	}
	c.writeAction(w, http.StatusOK, a, q, actionData{Fields: fields})
}

func (c *Console) serveAction(w http.ResponseWriter, r *http.Request, who user) {
	a := c.actions[r.URL.Path]
	in := r.PostForm
	q := question{path: r.URL.Path, values: in, who: who}
	refuse := func(err error) {
		fields, _ := a.fields(r.Context(), c, in) // without them the fault is still told
		c.writeAction(w, http.StatusUnprocessableEntity, a, q, actionData{Fields: fields, Fault: err.Error()})
	}
	p, err := a.preview(r.Context(), c, in)
	if err != nil {
		refuse(err)
		return
	}
	if in.Get("step") != "do" || p.Type != "" && in.Get("typed") != p.Type {
		d := actionData{Preview: p, Hidden: hidden(in, p.Carry)}
		if in.Get("step") == "do" {
			d.Fault = "what was typed is not " + p.Type
		}
		d.More = max(0, len(p.Rows)-mostPreviewRows)
		p.Rows = p.Rows[:min(len(p.Rows), mostPreviewRows)]
		c.writeAction(w, http.StatusOK, a, q, d)
		return
	}
	done, err := a.do(r.Context(), c, in)
	if err != nil {
		c.noteAction(who, true, a.title+" failed: "+done+" "+err.Error())
		refuse(err)
		return
	}
	c.noteAction(who, false, done)
	c.changed()
	http.Redirect(w, r, a.back(in), http.StatusSeeOther)
}

// noteAction remembers what was done, and logs it.
func (c *Console) noteAction(who user, failed bool, text string) {
	name := who.name
	if name == "" {
		name = "this machine"
	}
	c.Log.Infof("console: %s: %q", name, text)
	c.keeper.did(event{At: time.Now(), Kind: "action", Text: text, Bad: failed, Who: name})
}

// hidden is what a preview carries to the deed: all that was filled in, and what the preview adds.
func hidden(in url.Values, carry map[string]string) map[string]string {
	all := map[string]string{}
	for name := range in {
		switch name {
		case "token", "step", "typed":
		default:
			all[name] = in.Get(name)
		}
	}
	for name, value := range carry {
		all[name] = value
	}
	return all
}

func (c *Console) writeAction(w http.ResponseWriter, code int, a action, q question, d actionData) {
	d.Action, d.Danger, d.Token, d.Back = a.path, a.danger, c.guard.token(q.who), a.back(q.values)
	p := page{file: "action.html", title: a.title, under: ""}
	c.write(w, code, p.file, "layout", c.frame(p, q, d))
}

// command puts a command line together; what a shell would take apart is quoted.
func command(words ...string) string {
	for i, w := range words {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=.,:/+@%", r)
		}) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// commands are the line of our own tool and that of Kafka's, each with where the brokers are.
func (c *Console) commands(own, kafka []string) []string {
	at := []string{"--bootstrap-server", c.Bootstrap}
	lines := []string{command(append(append([]string{"barnabas"}, own...), at...)...)}
	if kafka != nil {
		lines = append(lines, command(append(append([]string{kafka[0]}, at...), kafka[1:]...)...))
	}
	return lines
}

// fixed is a field that is shown and cannot be changed.
func fixed(name, label, value string) field {
	return field{Name: name, Label: label, Value: value, Kind: "fixed"}
}
