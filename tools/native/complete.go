package native

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/tools"
)

// Completion: a shell hands over the words of the line, and gets back what the last of them may become. What that is follows from the tree of commands alone, except for names, which the cluster is asked for. A shell that
// waits, or that prints what went wrong between what somebody types, is worse than one that offers nothing.

// completeTime is how long a cluster may take to tell its names.
const completeTime = 1500 * time.Millisecond

// mostOffered bounds what is offered.
const mostOffered = 1000

//go:embed completion
var completionScripts embed.FS

var shells = []string{"bash", "zsh", "fish"}

func completionCommand() *cli.Command {
	return &cli.Command{Name: "completion", Usage: "print what makes a shell complete commands, options and names of the cluster", ArgsUsage: "SHELL", Category: category, HideHelpCommand: true, OnUsageError: refuse,
		Description: "SHELL is " + strings.Join(shells, ", ") + `. Topics, groups, brokers and users are those of the cluster that the line, or BARNABAS_BOOTSTRAP, names; one that does not answer at once offers none.

    . <(barnabas completion bash)
    barnabas completion zsh > "${fpath[1]}/_barnabas"
    barnabas completion fish > ~/.config/fish/completions/barnabas.fish

` + exitCodes,
		Action: func(ctx *cli.Context) error {
			if ctx.NArg() != 1 || !slices.Contains(shells, ctx.Args().First()) {
				return refuse(ctx, wrongUsage("one of these has to follow: %s", strings.Join(shells, ", ")), true)
			}
			script, err := completionScripts.ReadFile("completion/" + ctx.Args().First())
			if err != nil {
				return err
			}
			_, err = ctx.App.Writer.Write(script)
			return err
		}}
}

// CompleteCommand is what the shells' scripts call. It is in no list.
func CompleteCommand() *cli.Command {
	return &cli.Command{Name: "__complete", Hidden: true, HideHelp: true, SkipFlagParsing: true, Action: func(ctx *cli.Context) error {
		w := wishOf(ctx.App.Commands, ctx.Args().Slice())
		bounded, cancel := context.WithTimeout(ctx.Context, completeTime)
		defer cancel()
		offer(ctx.App.Writer, w, namesOf(bounded, w))
		return nil
	}}
}

// wish is what a word may become.
type wish struct {
	prefix  string      // what has been typed of it
	before  string      // what stands before each of the names, such as --topic=
	words   []suggested // known without asking
	names   string      // which names to ask for: topic, group, broker, user, or "" for none
	options map[string]string
}

type suggested struct{ word, usage string }

// wishOf tells what the last of a line's words may become.
func wishOf(commands []*cli.Command, line []string) wish {
	w := wish{options: map[string]string{}}
	if len(line) == 0 {
		line = []string{""}
	}
	w.prefix = line[len(line)-1]
	var current *cli.Command
	var arguments []string
	option := "" // that waits for its value
	level := commands
	for _, word := range line[:len(line)-1] {
		if option != "" {
			w.options[option], option = word, ""
			continue
		}
		if name, isOption := strings.CutPrefix(word, "-"); isOption && current != nil {
			name, value, joined := strings.Cut(strings.TrimPrefix(name, "-"), "=")
			switch {
			case joined:
				w.options[name] = value
			case name != "watch" && takesValue(current, name):
				option = name
			}
			continue
		}
		if at := slices.IndexFunc(level, func(c *cli.Command) bool { return c.HasName(word) }); at >= 0 && len(arguments) == 0 {
			current, level = level[at], level[at].Subcommands
			continue
		}
		arguments = append(arguments, word)
	}
	name, _, joined := strings.Cut(strings.TrimLeft(w.prefix, "-"), "=")
	switch {
	case option != "":
		w.value(option)
	case current != nil && strings.HasPrefix(w.prefix, "-") && joined:
		w.before = w.prefix[:strings.IndexByte(w.prefix, '=')+1]
		w.value(name)
	case current != nil && strings.HasPrefix(w.prefix, "-"):
		w.flags(current)
	case len(level) > 0 && len(arguments) == 0:
		for _, c := range level {
			if !c.Hidden {
				w.words = append(w.words, suggested{c.Name, c.Usage})
			}
		}
	case current != nil:
		w.argument(current.ArgsUsage, arguments)
	}
	return w
}

func (w *wish) flags(c *cli.Command) {
	for _, f := range c.VisibleFlags() {
		usage := ""
		if d, ok := f.(cli.DocGenerationFlag); ok {
			usage = strings.ReplaceAll(d.GetUsage(), "`", "")
		}
		for _, name := range f.Names() {
			if len(name) > 1 {
				w.words = append(w.words, suggested{"--" + name, usage})
			}
		}
	}
}

// plain offers words.
func (w *wish) plain(words ...string) {
	for _, word := range words {
		w.words = append(w.words, suggested{word: word})
	}
}

// value is that of an option.
func (w *wish) value(option string) {
	switch option {
	case "topic", "group", "broker", "user":
		w.names = option
	case "output", "o":
		w.plain(formats...)
	case "principal", "super-user":
		w.before, w.names = w.before+"User:", "user"
	}
}

// argument is one of a command's; usage is what the help calls them.
func (w *wish) argument(usage string, given []string) {
	kinds := strings.Fields(usage)
	if len(kinds) == 0 {
		return
	}
	at := len(given)
	if at >= len(kinds) {
		if at = len(kinds) - 1; !strings.Contains(kinds[at], "...") {
			return
		}
	}
	switch kind := strings.Trim(kinds[at], "[]."); kind {
	case "TOPIC[-PARTITION":
		w.names = "topic"
	case "QUOTA":
		w.plain(quotaNames...)
	case "QUOTA=VALUE":
		for _, name := range quotaNames {
			w.plain(name + "=")
		}
	case "TOPIC", "GROUP", "USER":
		w.names = strings.ToLower(kind)
	case "BROKER", "OLD", "NEW":
		w.names = "broker"
	case "SHELL":
		w.plain(shells...)
	case "KIND":
		w.plain("topic", "broker", "user", "client")
	case "NAME":
		w.names = given[at-1]
	case "PRINCIPAL":
		w.before, w.names = "User:", "user"
	case "OPERATION":
		w.plain("read", "write", "create", "delete", "alter", "describe", "cluster-action", "describe-configs", "alter-configs", "idempotent-write", "create-tokens", "describe-tokens", "all")
	case "RESOURCE":
		kind, _, named := strings.Cut(w.prefix, ":")
		if named && (kind == "topic" || kind == "group") {
			w.before, w.names = kind+":", kind
			return
		}
		w.plain("topic:", "group:", "cluster", "transactional-id:", "delegation-token:", "user:")
	}
}

// namesOf asks the cluster; nothing when it does not answer in time.
func namesOf(ctx context.Context, w wish) []string {
	if w.names == "" || w.before != "" && !strings.HasPrefix(w.prefix, w.before) && !strings.HasPrefix(w.before, w.prefix) {
		return nil
	}
	client, err := tools.Connect(cmp.Or(w.options["bootstrap-server"], os.Getenv("BARNABAS_BOOTSTRAP"), defaultServer), cmp.Or(w.options["command-config"], os.Getenv("BARNABAS_COMMAND_CONFIG")), "barnabas", kgo.RequestTimeoutOverhead(completeTime), kgo.RetryTimeout(completeTime))
	if err != nil {
		return nil
	}
	defer client.Close()
	asked := cluster.New(client)
	var names []string
	switch w.names {
	case "topic":
		names, _ = asked.TopicNames(ctx)
	case "group":
		groups, _ := asked.Groups(ctx)
		for _, g := range groups {
			names = append(names, g.Name)
		}
	case "broker":
		brokers, _, _ := asked.Brokers(ctx)
		for _, b := range brokers {
			names = append(names, strconv.Itoa(int(b.ID)))
		}
	case "user":
		users, _ := asked.Users(ctx)
		for _, u := range users {
			names = append(names, u.User)
		}
	}
	return names
}

// offer prints what the word may become, a line each: the word, and behind a tab what it is.
func offer(out io.Writer, w wish, names []string) {
	all := slices.Clone(w.words)
	for _, name := range names {
		if !strings.ContainsFunc(name, unprintable) {
			all = append(all, suggested{word: name})
		}
	}
	all = slices.DeleteFunc(all, func(s suggested) bool { return !strings.HasPrefix(w.before+s.word, w.prefix) })
	for _, s := range all[:min(len(all), mostOffered)] {
		if s.usage != "" {
			s.usage = "\t" + s.usage
		}
		fmt.Fprintln(out, w.before+s.word+s.usage)
	}
}

// unprintable are characters that no line of a shell should be given: names of groups are what strangers chose.
func unprintable(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }
