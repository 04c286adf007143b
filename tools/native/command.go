package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/tools"
	"barnabas/tools/spelling"
)

const category = "Native tools"

// Commands are the native commands of the program. What runs a broker has a sub-command of this face too: see BrokerCommands.
func Commands() []*cli.Command {
	return []*cli.Command{
		parent("topic", "list, describe, create, alter and delete topics", topicList(), topicDescribe(), topicCreate(), topicAlter(), topicFactor(), topicDelete()),
		parent("group", "list, describe, reset and delete consumer groups", groupList(), groupDescribe(), groupReset(), groupDelete()),
		planCommand(), reassignCommand(), consumeCommand(), produceCommand(), configCommand(), electCommand(),
		aclCommand(), quotaCommand(), userCommand(),
		disk(), topCommand(), healthCommand(), doctorCommand(),
		zkCommand(), logCommand(), completionCommand(),
	}
}

// call is one run of a command.
type call struct {
	*cli.Context
	ctx     context.Context  // ends when the command has taken too long, or, of one that lasts, when it is interrupted
	cluster *cluster.Cluster // of a command that asks brokers
	tree    *zkTree          // of one that asks ZooKeeper
}

// say gives a part of what a command that lasts has to say.
func (c *call) say(d document) error { return render(c.App.Writer, c.String("output"), d, true) }

// note tells people how things go, beside what the command has to say.
func (c *call) note(format string, args ...any) { fmt.Fprintf(c.App.ErrWriter, format+"\n", args...) }

func (c *call) values(option string) []string { return *c.Generic(option).(*Repeated) }

// command is what is particular to a leaf of the tree.
type command struct {
	name, usage string
	arguments   string // as the help shows them
	least, most int    // how many arguments; most -1 is any number
	help        string
	formats     []string // of -o; nil: those of a document
	flags       []cli.Flag
	watched     bool // --watch makes sense
	alters      bool // --dry-run makes sense
	risky       bool // --yes makes sense: what it does cannot be taken back
	lasts       bool // goes on until it is done or interrupted, however long that takes
	asks        asks
	run         func(c *call) (document, error)
}

// asks is whom a command asks.
type asks int8

const (
	brokers   asks = iota
	zooKeeper      // for znodes
	nobody         // it looks at files
)

func parent(name, usage string, children ...*cli.Command) *cli.Command {
	return &cli.Command{Name: name, Usage: usage, Category: category, Subcommands: children, HideHelpCommand: true, OnUsageError: refuse,
		Action: func(ctx *cli.Context) error {
			var names []string
			for _, c := range children {
				names = append(names, c.Name)
			}
			word := ctx.Args().First()
			if word == "" {
				return refuse(ctx, wrongUsage("one of these has to follow: %s", strings.Join(names, ", ")), true)
			}
			meant := ""
			if like := spelling.Closest(word, names); like != nil {
				meant = fmt.Sprintf(" (did you mean %s?)", like[0])
			}
			return refuse(ctx, wrongUsage("%q is none of %s%s", word, strings.Join(names, ", "), meant), true)
		}}
}

// refuse says that a call makes no sense.
func refuse(ctx *cli.Context, err error, _ bool) error {
	fmt.Fprintf(ctx.App.ErrWriter, "barnabas %s: %v\nbarnabas %[1]s --help tells more.\n", strings.TrimPrefix(ctx.Command.HelpName, ctx.App.Name+" "), err)
	return WrongUsage
}

const (
	defaultServer    = "127.0.0.1:9092"
	defaultZooKeeper = "127.0.0.1:2181"
)

// flags say where those are that a command asks.
func (a asks) flags() []cli.Flag {
	switch a {
	case zooKeeper:
		return []cli.Flag{
			&cli.StringFlag{Name: "zookeeper", Value: defaultZooKeeper, EnvVars: []string{"BARNABAS_ZOOKEEPER"}, Usage: "servers of ZooKeeper with the chroot, as `HOST:PORT[,HOST:PORT...][/CHROOT]`"},
			&cli.StringFlag{Name: "zk-tls-config-file", Usage: "property `FILE` with zookeeper.ssl.* for TLS to ZooKeeper"},
		}
	case nobody:
		return nil
	}
	return []cli.Flag{
		&cli.StringFlag{Name: "bootstrap-server", Value: defaultServer, EnvVars: []string{"BARNABAS_BOOTSTRAP"}, Usage: "brokers to ask first, as `HOST:PORT[,HOST:PORT...]`"},
		&cli.StringFlag{Name: "command-config", EnvVars: []string{"BARNABAS_COMMAND_CONFIG"}, Usage: "property `FILE` with settings of the client, such as security.protocol"},
	}
}

// reach gives a call whom its command asks, until leave is called. Nobody is connected to before the first question.
func (a asks) reach(c *call) (leave func(), err error) {
	switch a {
	case zooKeeper:
		c.tree = &zkTree{servers: c.String("zookeeper"), tlsFile: c.String("zk-tls-config-file"), within: min(c.Duration("timeout"), longestConnect)}
		return c.tree.close, nil
	case nobody:
		return func() {}, nil
	}
	// A broker that hangs is asked twice before another is.
	const perRequest, perRetry = 4 * time.Second, 25 * time.Second
	client, err := tools.Connect(c.String("bootstrap-server"), c.String("command-config"), "barnabas", kgo.RequestTimeoutOverhead(perRequest), kgo.RetryTimeout(perRetry))
	if err != nil {
		return nil, err
	}
	c.cluster = cluster.New(client)
	return client.Close, nil
}

// silent says that nobody answered.
func (a asks) silent(ctx *cli.Context, err error) string {
	if a == zooKeeper {
		return fmt.Sprintf("no answer from ZooKeeper at %s: %v", ctx.String("zookeeper"), err)
	}
	return fmt.Sprintf("no answer from the brokers at %s: %v", ctx.String("bootstrap-server"), err)
}

func (d command) build() *cli.Command {
	formats := formats
	if d.formats != nil {
		formats = d.formats
	}
	flags := slices.Concat(d.flags, []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", Usage: "how to say it: " + strings.Join(formats, ", ")},
	}, d.asks.flags())
	if !d.lasts {
		flags = append(flags, &cli.DurationFlag{Name: "timeout", Value: 45 * time.Second, Usage: "how long the whole may take"})
	}
	if d.watched {
		flags = append(flags, &cli.DurationFlag{Name: "watch", Usage: "say it again and again, every `PACE` (2s unless given), until interrupted"})
	}
	if d.alters {
		flags = append(flags, &cli.BoolFlag{Name: "dry-run", Usage: "say what would be done, and change nothing"})
	}
	if d.risky {
		flags = append(flags, &cli.BoolFlag{Name: "yes", Usage: "do it without asking; needed where nobody can be asked"})
	}
	return &cli.Command{Name: d.name, Usage: d.usage, ArgsUsage: d.arguments, Description: strings.TrimSpace(d.help) + "\n\n" + exitCodes, Flags: flags, HideHelpCommand: true, OnUsageError: refuse,
		Action: func(ctx *cli.Context) error {
			format := ctx.String("output")
			switch n := ctx.NArg(); {
			case !slices.Contains(formats, format):
				return refuse(ctx, wrongUsage("-o %s is none of %s", format, strings.Join(formats, ", ")), true)
			case n < d.least, d.most >= 0 && n > d.most:
				return refuse(ctx, wrongUsage("takes %s", d.wanted()), true)
			}
			return d.perform(ctx, strings.TrimSuffix(format, "-rows"))
		}}
}

// wanted says which arguments a command takes.
func (d command) wanted() string {
	if d.most == 0 {
		return "no arguments"
	}
	return "the arguments " + d.arguments
}

// perform runs a command once, or with --watch until it is interrupted; then the last run's exit code counts.
func (d command) perform(ctx *cli.Context, format string) error {
	c := &call{Context: ctx}
	leave, err := d.asks.reach(c)
	if err != nil {
		return d.end(ctx, format, err)
	}
	defer leave()
	pace := ctx.Duration("watch")
	once := func(parent context.Context) error {
		if !d.lasts {
			limited, cancel := context.WithTimeout(parent, ctx.Duration("timeout"))
			defer cancel()
			parent = limited
		}
		c.ctx = parent
		said, err := d.run(c)
		if said != nil {
			if err := render(ctx.App.Writer, format, said, pace > 0); err != nil {
				return err
			}
		}
		return err
	}
	if d.lasts {
		until, stop := signal.NotifyContext(ctx.Context, os.Interrupt, syscall.SIGTERM)
		defer stop()
		return d.end(ctx, format, once(until))
	}
	if pace <= 0 {
		return d.end(ctx, format, once(ctx.Context))
	}
	watched, stop := signal.NotifyContext(ctx.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	for {
		between(ctx.App.Writer, format)
		err := once(watched)
		if watched.Err() != nil {
			return d.end(ctx, format, exitOnly(err))
		}
		code := d.end(ctx, format, err)
		if errors.Is(code, WrongUsage) {
			return code
		}
		select {
		case <-time.After(pace):
		case <-watched.Done():
			return code
		}
	}
}

// exitOnly leaves of an error what the command found out; that it was interrupted is no failure.
func exitOnly(err error) error {
	var exit Exit
	if errors.As(err, &exit) {
		return exit
	}
	return nil
}

// between separates what a watched command says: a terminal is wiped, a stream of tables or of YAML gets a line.
func between(w io.Writer, format string) {
	switch {
	case format == "yaml":
		fmt.Fprintln(w, "---")
	case format == "json":
	case isTerminal(w):
		fmt.Fprintf(w, "\x1b[H\x1b[2J%s\n\n", time.Now().Format(time.DateTime))
	default:
		fmt.Fprintf(w, "\n%s\n", time.Now().Format(time.DateTime))
	}
}

// end says why a command failed, where it has not said so itself: as text, or, to who reads JSON or YAML, as a document on standard error.
func (d command) end(ctx *cli.Context, format string, err error) error {
	if err == nil {
		return nil
	}
	code := exitOf(err)
	var exit Exit
	var usage *usageError
	switch {
	case errors.As(err, &exit):
	case errors.As(err, &usage) && format == "table":
		return refuse(ctx, err, true)
	case format == "table":
		fmt.Fprintf(ctx.App.ErrWriter, "barnabas: %s\n", d.sentence(ctx, err, code))
	default:
		_ = render(ctx.App.ErrWriter, format, failure{documentVersion, d.sentence(ctx, err, code), int(code)}, true)
	}
	return code
}

func (d command) sentence(ctx *cli.Context, err error, code Exit) string {
	if code == Unreachable {
		return d.asks.silent(ctx, err)
	}
	return err.Error()
}

// failure is why a command failed.
type failure struct {
	Version  int    `json:"version"`
	Error    string `json:"error"`
	ExitCode int    `json:"exit_code"`
}

func (f failure) show(w io.Writer) { fmt.Fprintln(w, f.Error) }
