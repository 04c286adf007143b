package native

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/admin/health"
)

type verdict struct {
	Version    int              `json:"version"`
	Healthy    bool             `json:"healthy"`
	Controller *int64           `json:"controller"`
	Registered []int32          `json:"brokers_registered"`
	Answering  []int32          `json:"brokers_answering"`
	Counts     health.Counts    `json:"counts"`
	Findings   []health.Finding `json:"findings"`
	NotJudged  []string         `json:"not_judged"` // what could not be asked for
}

func verdictOf(s *cluster.Snapshot, findings []health.Finding, counts health.Counts) *verdict {
	v := &verdict{Version: documentVersion, Healthy: health.Healthy(findings), Controller: known(int64(s.Controller)), Registered: []int32{}, Answering: listed(s.Answering()), Counts: counts,
		Findings: listed(findings), NotJudged: listed(s.Unread)}
	for _, b := range s.Brokers {
		v.Registered = append(v.Registered, b.ID)
	}
	return v
}

// exit is the code that the verdict ends with.
func (v *verdict) exit() error {
	if v.Healthy {
		return nil
	}
	return Unhealthy
}

func (v *verdict) show(w io.Writer) {
	word := "HEALTHY"
	if !v.Healthy {
		word = "UNHEALTHY"
	}
	fmt.Fprintf(w, "%s: controller %s, brokers %s registered, %s answering, %d topics, %d partitions (%d offline, %d under-replicated, %d under min ISR)\n", word, maybe(v.Controller), ids(v.Registered), ids(v.Answering),
		v.Counts.Topics, v.Counts.Partitions, v.Counts.Offline, v.Counts.UnderReplicated, v.Counts.UnderMinISR)
	for _, f := range v.Findings {
		fmt.Fprintf(w, "\n[%s] %s: %s\n", f.Severity, f.Rule, f.Summary)
		fmt.Fprintf(w, "    %s\n", some(f.Subjects))
		if f.Advice != "" {
			fmt.Fprintf(w, "    What to do: %s.\n", f.Advice)
		}
		const shown = 5
		for i, command := range f.Commands {
			if i == shown {
				fmt.Fprintf(w, "        ... and %d more; -o json has all\n", len(f.Commands)-shown)
				break
			}
			fmt.Fprintf(w, "        %s\n", command)
		}
	}
	for _, what := range v.NotJudged {
		fmt.Fprintf(w, "\nNot judged, since it could not be asked for: %s\n", what)
	}
}

// some is a list that may be long.
func some(list []string) string {
	const shown = 10
	if len(list) <= shown {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}

const verdictFields = `Fields: healthy, controller, brokers_registered, brokers_answering, counts (topics, partitions, offline_partitions, under_replicated_partitions, under_min_isr_partitions, leaders_not_preferred, reassigning_partitions, failed_log_dirs, brokers_not_answering), findings (rule, severity, summary, subjects`

func healthCommand() *cli.Command {
	c := command{
		name: "health", usage: "one verdict on the cluster, with its reasons", watched: true,
		help: `Asks every broker, and says whether the cluster is healthy and why not.

Critical, and so unhealthy: no controller, brokers that do not agree on the controller, on each other or on who leads (for longer than a second), a registered broker that does not answer, a broker with replicas that is not registered, partitions that are offline, under-replicated or below min.insync.replicas, log directories out of use. Leaders that are not the preferred ones are a warning, reassignments under way a note. What could not be asked for, such as for want of rights, is not judged, and listed.

` + verdictFields + `), not_judged.

    barnabas health && echo fine
    barnabas health --watch 10s
    barnabas health -o json | jq -r '.findings[].rule'`,
		run: func(c *call) (document, error) {
			s, err := c.cluster.Snapshot(c.ctx, time.Now(), false)
			if err != nil {
				return nil, err
			}
			findings, counts := health.Examine(s)
			v := verdictOf(s, findings, counts)
			return v, v.exit()
		},
	}.build()
	c.Category = category
	return c
}

func doctorCommand() *cli.Command {
	c := command{
		name: "doctor", usage: "what is wrong or going to be, and the commands that mend it",
		help: `Finds what health finds, and what is going to be trouble: throttles left over from a reassignment, transactions that hang, topics with one replica or whose min.insync.replicas leaves no room, replicas all in one rack or named twice, groups whose offsets are out of range, uneven leaders, disks that are nearly full, retention that does not do what it seems to, unclean elections. For each it says what to do and gives the commands. It changes nothing.

` + verdictFields + `, advice, commands), not_judged.

    barnabas doctor
    barnabas doctor -o json | jq -r '.findings[].commands[]?'`,
		run: func(c *call) (document, error) {
			s, err := c.cluster.Snapshot(c.ctx, time.Now(), true)
			if err != nil {
				return nil, err
			}
			findings, counts := health.Doctor(s, c.String("bootstrap-server"))
			v := verdictOf(s, findings, counts)
			return v, v.exit()
		},
	}.build()
	c.Category = category
	return c
}
