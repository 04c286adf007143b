package embedded

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The server.N lines of a zoo.cfg, and dataDir/myid.

// join makes the server one of an ensemble: lines are the server.N lines by their N. A client port that stands in this server's line is taken
// where the file has none of its own.
func (c *Config) join(lines map[string]string, host, port *string) error {
	e := &Ensemble{Servers: map[uint64]Addresses{}}
	clients := map[uint64]string{}
	for n, line := range lines {
		id, err := strconv.ParseUint(n, 10, 8)
		if err != nil || id == 0 {
			return fmt.Errorf("server.%s: a server's number is one of 1 to 255", n)
		}
		a, client, err := parseServer(line)
		if err != nil {
			return fmt.Errorf("server.%s=%s: %w", n, line, err)
		}
		e.Servers[id], clients[id] = a, client
	}
	file := filepath.Join(c.DataDir, "myid")
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("a server of an ensemble has its number in %s: %w", file, err)
	}
	if e.ID, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 8); err != nil {
		return fmt.Errorf("%s has %q, not a number of 1 to 255", file, strings.TrimSpace(string(text)))
	}
	if _, ok := e.Servers[e.ID]; !ok {
		return fmt.Errorf("%s says that this is server %d, which no server.N line names", file, e.ID)
	}
	if client := clients[e.ID]; client != "" && *port == "" {
		if h, p, err := net.SplitHostPort(client); err == nil {
			*host, *port = h, p
		} else {
			*port = client
		}
	}
	c.Ensemble = e
	return nil
}

// parseServer takes host:port:port[:participant][;client port] apart.
func parseServer(line string) (a Addresses, client string, err error) {
	line, client, _ = strings.Cut(line, ";")
	host, rest := line, ""
	if strings.HasPrefix(line, "[") {
		var ok bool
		if host, rest, ok = strings.Cut(line[1:], "]:"); !ok {
			return a, "", fmt.Errorf("not [address]:port:port")
		}
	} else {
		host, rest, _ = strings.Cut(line, ":")
	}
	parts := strings.Split(rest, ":")
	if len(parts) == 3 && parts[2] != "participant" {
		return a, "", fmt.Errorf("%s: all servers of this ensemble are participants", parts[2])
	}
	if host == "" || len(parts) < 2 || len(parts) > 3 || strings.Contains(line, "|") {
		return a, "", fmt.Errorf("not host:port:port")
	}
	if a.Quorum, err = address("the first port", host, parts[0]); err == nil {
		a.Relay, err = address("the second port", host, parts[1])
	}
	return a, client, err
}

// bindTo is where a port for the other servers is opened.
func (c *Config) bindTo(addr string) string {
	if !c.ListenOnAll {
		return addr
	}
	_, port, _ := net.SplitHostPort(addr)
	return net.JoinHostPort("", port)
}
