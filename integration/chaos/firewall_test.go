package chaos

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Clusters side by side have a place each, and test processes side by side have places of their own. Broker n of a place runs as the n-th user after the place's first, so that the firewall
// knows whose packets are whose.
const (
	mostPlaces      = 4
	brokersPerPlace = 5
)

var firstUser = 61000 + os.Getpid()%100*mostPlaces*brokersPerPlace

var places = func() chan int {
	free := make(chan int, mostPlaces)
	for p := range mostPlaces {
		free <- p
	}
	return free
}()

// place waits for a free place, which is the test's until it ends.
func place(t testing.TB) int {
	p := <-places
	t.Cleanup(func() { places <- p })
	return p
}

// firewall cuts brokers off by dropping packets without a word, as a broken switch does: what a broker's user sends, and what is sent to its listener.
type firewall struct{ table string }

// newFirewall makes a table of a place's own in the kernel, or returns nil where it may not.
func newFirewall(t testing.TB, place int) *firewall {
	f := &firewall{fmt.Sprintf("barnabas_chaos_%d_%d", os.Getpid(), place)}
	if os.Geteuid() != 0 {
		t.Log("no firewall: not root")
		return nil
	}
	script := "add table inet %[1]s\n" +
		"add chain inet %[1]s out { type filter hook output priority 0; }\n" +
		"add chain inet %[1]s in { type filter hook input priority 0; }\n"
	if err := nft(fmt.Sprintf(script, f.table)); err != nil {
		t.Logf("no firewall: %v", err)
		return nil
	}
	t.Cleanup(func() { _ = nft("delete table inet " + f.table) })
	return f
}

func nft(script string) error {
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (f *firewall) drop(t testing.TB, rules ...string) {
	t.Helper()
	var script strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&script, "add rule inet %s %s drop\n", f.table, r)
	}
	require.NoError(t, nft(script.String()))
}

// ports are those of addresses, as a rule names them.
func ports(t testing.TB, addrs ...string) string {
	t.Helper()
	var list []string
	for _, a := range addrs {
		_, p, err := net.SplitHostPort(a)
		require.NoError(t, err)
		list = append(list, p)
	}
	return "{ " + strings.Join(list, ", ") + " }"
}

func (f *firewall) everybody(t testing.TB, uid int, broker []string, _ string) {
	f.drop(t, fmt.Sprintf("out meta skuid %d", uid), "in tcp dport "+ports(t, broker...))
}

func (f *firewall) zooKeeper(t testing.TB, uid int, _ []string, zookeeper string) {
	f.drop(t, fmt.Sprintf("out meta skuid %d tcp dport %s", uid, ports(t, zookeeper)))
}

func (f *firewall) allButZooKeeper(t testing.TB, uid int, broker []string, zookeeper string) {
	f.drop(t, fmt.Sprintf("out meta skuid %d tcp dport != %s", uid, ports(t, zookeeper)), "in tcp dport "+ports(t, broker...))
}

// open lets everything pass again, for all brokers: rounds end together.
func (f *firewall) open(t testing.TB) {
	t.Helper()
	require.NoError(t, nft(fmt.Sprintf("flush chain inet %[1]s out\nflush chain inet %[1]s in", f.table)))
}
