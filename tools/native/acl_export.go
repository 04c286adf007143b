package native

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/urfave/cli/v2"

	"barnabas/broker/acl"
)

func aclExport() *cli.Command {
	return command{
		name: "export", usage: "print access lists as kafka-acls commands", arguments: "[RESOURCE...]", least: 0, most: -1,
		help: `Prints the commands that would make the same entries anew, for this or another cluster; it takes what 'barnabas acl list' takes.

Fields: commands.

    barnabas acl export > acls.sh`,
		flags: listFlags(),
		run: func(c *call) (document, error) {
			found, err := c.listedACLs()
			if err != nil {
				return nil, err
			}
			return &commandsDocument{documentVersion, listed(aclCommands(c.String("bootstrap-server"), c.String("command-config"), found))}, nil
		},
	}.build()
}

// commandsDocument is what somebody may run.
type commandsDocument struct {
	Version  int      `json:"version"`
	Commands []string `json:"commands"`
}

func (d *commandsDocument) show(w io.Writer) {
	for _, line := range d.Commands {
		fmt.Fprintln(w, line)
	}
}

var resourceOptions = map[kmsg.ACLResourceType]string{
	kmsg.ACLResourceTypeTopic: "--topic", kmsg.ACLResourceTypeGroup: "--group", kmsg.ACLResourceTypeTransactionalId: "--transactional-id",
	kmsg.ACLResourceTypeDelegationToken: "--delegation-token", kmsg.ACLResourceTypeUser: "--user-principal",
}

// aclCommands are the calls of kafka-acls that make entries: one for all operations of a principal from a host on a pattern.
func aclCommands(server, config string, bindings []acl.Binding) []string {
	type subject struct {
		pattern         acl.Pattern
		principal, host string
		permission      kmsg.ACLPermissionType
	}
	var order []subject
	ops := map[subject][]string{}
	for _, b := range bindings {
		s := subject{b.Pattern, b.Principal, b.Host, b.Permission}
		if ops[s] == nil {
			order = append(order, s)
		}
		ops[s] = append(ops[s], "--operation", acl.Word(b.Operation.String()))
	}
	var lines []string
	for _, s := range order {
		words := []string{"kafka-acls.sh", "--bootstrap-server", server}
		if config != "" {
			words = append(words, "--command-config", config)
		}
		verb := strings.ToLower(s.permission.String())
		words = append(words, "--add", "--"+verb+"-principal", s.principal, "--"+verb+"-host", s.host)
		words = append(words, ops[s]...)
		if option := resourceOptions[s.pattern.Resource]; option != "" {
			words = append(words, option, s.pattern.Name, "--resource-pattern-type", strings.ToLower(s.pattern.Type.String()))
		} else {
			words = append(words, "--cluster")
		}
		for i := range words {
			words[i] = shellWord(words[i])
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellWord is a word that a shell takes for what it is: names of principals and groups are what strangers chose.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
