package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"barnabas/admin/cluster"
)

// page is one page: where it is, what is asked for it, and which parts of it are alive.
type page struct {
	path     string
	title    string
	file     string        // its template in templates/, which defines "content" and the live regions
	under    string        // the path of the entry in the navigation that it belongs to; its own where it has one
	entry    bool          // has an entry in the navigation
	live     []string      // regions that are sent when they change
	pace     time.Duration // how often a watched page is looked at again; 0: it stands still
	data     func(ctx context.Context, c *Console, q question) (any, error)
	needs    func(who user) bool // who may see it; nil: everybody
	download func(c *Console, w http.ResponseWriter, q question, data any) bool
}

// allPages is the table of pages, in the order of the navigation.
func allPages() []page {
	return []page{
		overviewPage(),
		brokersPage(), brokerPage(),
		topicsPage(), topicPage(), topicConfigPage(), topicGroupsPage(), topicMessagesPage(),
		groupsPage(), groupPage(),
		movesPage(),
		accessPage(),
		doctorPage(),
	}
}

// question is what a page is asked for.
type question struct {
	path   string
	values url.Values
	who    user
	again  bool // for the live regions of a page that is shown already
}

// key is the same for those who would see the same.
func (q question) key() string {
	return fmt.Sprint(q.path, "?", q.values.Encode(), " ", q.who.acts, q.who.records)
}

// get is a value of the address, "" where it is not there.
func (q question) get(name string) string { return q.values.Get(name) }

// frame is what a page's template is given: the page's own data and what is around it.
type frame struct {
	Page    string
	Title   string
	Path    string
	Under   string
	Search  string // what is searched for, where the page can be searched
	Entries []entry
	Who     user
	Access  string
	Live    bool
	Version string
	Data    any
	Taken   time.Time
}

type entry struct {
	Path, Title string
	Current     bool
}

func (c *Console) frame(p page, q question, data any) frame {
	f := frame{Page: p.file, Title: p.title, Path: q.path, Under: p.under, Search: q.get("q"), Who: q.who, Access: c.guard.String(), Live: p.pace > 0, Version: c.Version, Data: data, Taken: time.Now()}
	for _, other := range c.order {
		if other.entry && (other.needs == nil || other.needs(q.who)) {
			f.Entries = append(f.Entries, entry{other.path, other.title, other.path == p.under})
		}
	}
	if named, ok := data.(interface{ title() string }); ok {
		f.Title = named.title()
	}
	return f
}

// MayAct and MayReadRecords are for templates.
func (f frame) MayAct() bool { return f.Who.acts }

// MayReadRecords tells whether links to records make sense.
func (f frame) MayReadRecords() bool { return f.Who.records }

// UserName is who signed in.
func (f frame) UserName() string { return f.Who.name }

func (c *Console) servePage(w http.ResponseWriter, r *http.Request, who user) {
	p := c.pages[r.URL.Path]
	q := question{path: r.URL.Path, values: r.URL.Query(), who: who}
	if p.needs != nil && !p.needs(who) {
		c.serveFault(w, q, http.StatusForbidden, errors.New("this page is not for who has not signed in: "+c.guard.String()))
		return
	}
	data, err := p.data(r.Context(), c, q)
	if err != nil {
		c.serveFault(w, q, statusOf(err), err)
		return
	}
	if p.download != nil && p.download(c, w, q, data) {
		return
	}
	c.write(w, http.StatusOK, p.file, "layout", c.frame(p, q, data))
}

// statusOf is the status of a page that cannot be shown.
func statusOf(err error) int {
	var missing *cluster.NotFoundError
	var bad *badQuestion
	switch {
	case errors.As(err, &missing):
		return http.StatusNotFound
	case errors.As(err, &bad):
		return http.StatusBadRequest
	case cluster.IsUnreachable(err):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadGateway
}

// badQuestion is an address that makes no sense.
type badQuestion struct{ reason string }

func (e *badQuestion) Error() string { return e.reason }

func bad(format string, args ...any) error { return &badQuestion{fmt.Sprintf(format, args...)} }

// write renders into memory first, so that what fails half-way is not half a page.
func (c *Console) write(w http.ResponseWriter, code int, file, name string, data any) {
	var out bytes.Buffer
	if err := c.templates[file].ExecuteTemplate(&out, name, data); err != nil {
		c.Log.WithError(err).Errorf("the page %s", file)
		plain(w, http.StatusInternalServerError, "the page could not be made")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, printable(out.String())) // who has gone needs no answer
}

// printable shows the control characters that are left in a page as signs: names may hold them, and pages are looked at in terminals too.
func printable(page string) string {
	return strings.Map(func(r rune) rune {
		if r == '\r' {
			return r
		}
		return control(r)
	}, page)
}

// regions makes the live parts of a page.
func (c *Console) regions(ctx context.Context, p page, q question) (map[string]string, error) {
	if p.needs != nil && !p.needs(q.who) {
		return nil, errors.New("not for who asks")
	}
	data, err := p.data(ctx, c, q)
	if err != nil {
		return nil, err
	}
	f := c.frame(p, q, data)
	regions := map[string]string{}
	for _, name := range p.live {
		var out bytes.Buffer
		if err := c.templates[p.file].ExecuteTemplate(&out, name, f); err != nil {
			return nil, err
		}
		regions[name] = printable(out.String())
	}
	return regions, nil
}

// serveFault is a page that says why there is none.
func (c *Console) serveFault(w http.ResponseWriter, q question, code int, err error) {
	p := page{file: "fault.html", title: http.StatusText(code)}
	c.write(w, code, p.file, "layout", c.frame(p, q, struct {
		Status string
		Reason string
		Down   bool
	}{http.StatusText(code), err.Error(), cluster.IsUnreachable(err)}))
}

// templates are the pages' template sets, by file.
type templates map[string]*template.Template

func parseTemplates(pages []page) (templates, error) {
	base, err := template.New("").Funcs(functions).ParseFS(files, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	sets := templates{}
	names := []string{"fault.html", "action.html"}
	for _, p := range pages {
		names = append(names, p.file)
	}
	for _, name := range names {
		set, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if sets[name], err = set.ParseFS(files, "templates/"+name); err != nil {
			return nil, err
		}
	}
	return sets, nil
}
