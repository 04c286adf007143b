// Package console is the web console: pages, JSON and a stream of changes about a whole cluster, and the safe ones of the actions on it.
//
// Everything is asked of brokers over Kafka's protocol through admin/cluster, and judged by admin/health, so that the console, the tools and scripts tell the same. Pages are HTML made
// here and can be read without script; the script swaps rows in. A page is one file, with its data and its template beside it in templates/, and one line in the table of pages.go; an action
// likewise, in the table of actions.go.
//
// Nothing is asked while nobody looks: what pages need is read when it is needed and shared for a moment (shared.go), streams of the same view share one loop (live.go), and the keeper of
// lag and events (keeper.go) rests when nobody has looked for an hour.
//
// Names, settings and records come from strangers. They reach pages through html/template alone, and are never run, matched as expressions or taken for HTML; see security.go for who may ask
// and act.
package console
