package native

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"barnabas/admin"
	"barnabas/admin/cluster"
)

// Users that log in by SASL/SCRAM. A password comes from standard input or from somebody who types it, never from an argument, which others on the machine could see and a shell would remember.

func userCommand() *cli.Command {
	return parent("user", "list, add and remove users that log in by SCRAM", userList(), userAdd(), userRemove())
}

type usersDocument struct {
	Version int        `json:"version"`
	Users   []userLine `json:"users"`
}

type userLine struct {
	User        string           `json:"user"`
	Credentials []credentialLine `json:"credentials"`
	Error       *string          `json:"error"`
}

type credentialLine struct {
	Mechanism  string `json:"mechanism"`
	Iterations int32  `json:"iterations"`
}

func (d *usersDocument) show(w io.Writer) {
	rows := [][]string{{"USER", "MECHANISM", "ITERATIONS"}}
	for _, u := range d.Users {
		if u.Error != nil {
			rows = append(rows, []string{u.User, "not known: " + *u.Error, "-"})
		}
		for _, c := range u.Credentials {
			rows = append(rows, []string{u.User, c.Mechanism, strconv.Itoa(int(c.Iterations))})
		}
	}
	columns(w, rows)
}

func usersOf(found []admin.ScramDescription) (*usersDocument, error) {
	d := &usersDocument{documentVersion, []userLine{}}
	var failed []error
	for _, u := range found {
		line := userLine{User: u.User, Credentials: []credentialLine{}}
		if failed = append(failed, u.Err); u.Err != nil {
			line.Error = words("%v", u.Err)
		}
		for _, c := range u.Credentials {
			line.Credentials = append(line.Credentials, credentialLine{c.Mechanism.String(), c.Iterations})
		}
		d.Users = append(d.Users, line)
	}
	return d, exitOfFirst(failed)
}

func userList() *cli.Command {
	return command{
		name: "list", usage: "list users with their mechanisms", arguments: "[USER...]", least: 0, most: -1, watched: true,
		help: `Lists the users that have SCRAM credentials, all or those that are named. Neither passwords nor what is kept of them can be asked for. Users of other mechanisms stand in the brokers' own files.

Fields: users (user, credentials (mechanism, iterations), error).`,
		run: func(c *call) (document, error) {
			names := slices.Compact(slices.Sorted(slices.Values(c.Args().Slice())))
			found, err := c.cluster.Users(c.ctx, names...)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				if !slices.ContainsFunc(found, func(u admin.ScramDescription) bool { return u.User == name }) {
					return nil, &cluster.NotFoundError{Kind: "user", Name: name}
				}
			}
			return usersOf(found)
		},
	}.build()
}

func mechanismFlag(usage string) cli.Flag { return many("mechanism", usage) }

func (c *call) mechanisms() ([]admin.ScramMechanism, error) {
	var list []admin.ScramMechanism
	for _, name := range c.values("mechanism") {
		m, known := admin.ParseScramMechanism(strings.ToUpper(name))
		if !known {
			return nil, wrongUsage("--mechanism %s is none of %v", name, admin.ScramMechanisms())
		}
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list, nil
}

func userAdd() *cli.Command {
	return command{
		name: "add", usage: "give a user a password, a new one or in place of the one it has", arguments: "USER", least: 1, most: 1, alters: true,
		help: `The password is the first line of standard input; at a terminal it is asked for twice and not shown. It goes to the brokers salted: they never see it. With --dry-run no password is asked for.

Fields: dry_run, changes (kind, name, action, what, from, to, done, error).

    barnabas user add alice < password-file
    barnabas user add alice --mechanism SCRAM-SHA-256 --iterations 8192`,
		flags: []cli.Flag{
			mechanismFlag("`NAME` of a SCRAM mechanism; any number of times (default: SCRAM-SHA-512)"),
			&cli.IntFlag{Name: "iterations", Value: admin.MinScramIterations, Usage: fmt.Sprintf("how often the password is hashed: %d to %d", admin.MinScramIterations, admin.MaxScramIterations)},
		},
		run: func(c *call) (document, error) {
			mechanisms, err := c.mechanisms()
			if err != nil {
				return nil, err
			}
			if mechanisms == nil {
				mechanisms = []admin.ScramMechanism{admin.ScramSHA512}
			}
			iterations := c.Int("iterations")
			if iterations < admin.MinScramIterations || iterations > admin.MaxScramIterations {
				return nil, wrongUsage("--iterations %d is not between %d and %d", iterations, admin.MinScramIterations, admin.MaxScramIterations)
			}
			name := c.Args().First()
			has, err := c.credentials(name)
			if err != nil {
				return nil, err
			}
			d := &changes{documentVersion, c.Bool("dry-run"), []change{}}
			if !d.DryRun {
				password := ""
				if password, err = c.password(name); err != nil {
					return nil, err
				}
				var set []cluster.NewPassword
				for _, m := range mechanisms {
					set = append(set, cluster.NewPassword{ScramInfo: admin.ScramInfo{Mechanism: m, Iterations: int32(iterations)}, Password: password})
				}
				err = c.cluster.AlterUser(c.ctx, name, set, nil)
			}
			for _, m := range mechanisms {
				one := change{Kind: "user", Name: name, Action: "add", What: m.String(), To: iterationsText(iterations)}
				if before, there := has[m]; there {
					one.Action, one.From = "replace", iterationsText(int(before))
				}
				_ = d.result(one, err)
			}
			return d, exitOfFirst([]error{err})
		},
	}.build()
}

func iterationsText(n int) *string { return words("%d iterations", n) }

// credentials are those that a user has.
func (c *call) credentials(name string) (map[admin.ScramMechanism]int32, error) {
	found, err := c.cluster.Users(c.ctx, name)
	has := map[admin.ScramMechanism]int32{}
	for _, u := range found {
		err = errors.Join(err, u.Err)
		for _, one := range u.Credentials {
			has[one.Mechanism] = one.Iterations
		}
	}
	return has, err
}

// password reads one: the first line, or what somebody types twice.
func (c *call) password(user string) (string, error) {
	const longest = 1 << 10
	in := bufio.NewReader(io.LimitReader(c.App.Reader, longest))
	terminal, isFile := c.App.Reader.(*os.File)
	if !isFile || !isTerminal(terminal) {
		return oneLine(in)
	}
	restore, err := hideTyping(terminal)
	if err != nil {
		return "", fmt.Errorf("the password would be seen here; give it as standard input: %w", err)
	}
	defer restore()
	ask := func(question string) (string, error) {
		fmt.Fprint(c.App.ErrWriter, question)
		defer fmt.Fprintln(c.App.ErrWriter)
		return oneLine(in)
	}
	first, err := ask("Password of " + strconv.Quote(user) + ": ")
	if err != nil {
		return "", err
	}
	again, err := ask("Once more: ")
	if err == nil && again != first {
		err = errors.New("they differ; nothing was changed")
	}
	return first, err
}

// oneLine is the first line, which must not be empty. An end without a line break is one, too.
func oneLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.New("there is no password on standard input")
	}
	return line, nil
}

func userRemove() *cli.Command {
	return command{
		name: "remove", usage: "take a user's credentials away", arguments: "USER", least: 1, most: 1, alters: true, risky: true,
		help: `Takes all credentials of a user away, or those of some mechanisms: it cannot log in by them any more; connections that stand stay until they authenticate again. Its access lists and quotas stay. At a terminal the name has to be typed; elsewhere --yes has to be given.

Fields: dry_run, changes (kind, name, action, what, from, to, done, error).`,
		flags: []cli.Flag{mechanismFlag("only of the mechanism `NAME`; any number of times")},
		run: func(c *call) (document, error) {
			name := c.Args().First()
			mechanisms, err := c.mechanisms()
			if err != nil {
				return nil, err
			}
			if err := c.sure("taking credentials of "+name+" away", name); err != nil {
				return nil, err
			}
			has, err := c.credentials(name)
			if err != nil {
				return nil, err
			}
			if mechanisms == nil {
				mechanisms = slices.DeleteFunc(admin.ScramMechanisms(), func(m admin.ScramMechanism) bool { return has[m] == 0 })
			}
			if len(mechanisms) == 0 {
				return nil, &cluster.NotFoundError{Kind: "user", Name: name}
			}
			for _, m := range mechanisms {
				if has[m] == 0 {
					return nil, &cluster.NotFoundError{Kind: m.String() + " credential of", Name: name}
				}
			}
			d := &changes{documentVersion, c.Bool("dry-run"), []change{}}
			if !d.DryRun {
				err = c.cluster.AlterUser(c.ctx, name, nil, mechanisms)
			}
			for _, m := range mechanisms {
				_ = d.result(change{Kind: "user", Name: name, Action: "remove", What: m.String(), From: iterationsText(int(has[m]))}, err)
			}
			return d, exitOfFirst([]error{err})
		},
	}.build()
}
