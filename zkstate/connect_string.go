package zkstate

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

const defaultZooKeeperPort = "2181"

// parseConnect takes zookeeper.connect apart: servers as host:port, and the chroot ("" when there is none).
func parseConnect(s string) (servers []string, chroot string, err error) {
	hosts, path, _ := strings.Cut(s, "/")
	if path = strings.Trim(path, "/"); path != "" {
		chroot = "/" + path
		if err := checkPath(chroot); err != nil {
			return nil, "", fmt.Errorf("zookeeper.connect %q: chroot: %w", s, err)
		}
	}
	for _, server := range strings.Split(hosts, ",") {
		server = strings.TrimSpace(server)
		if server == "" {
			continue
		}
		host, port, err := net.SplitHostPort(server)
		if err != nil { // no port, perhaps an IPv6 address with or without brackets
			host, port = strings.Trim(server, "[]"), defaultZooKeeperPort
		}
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || host == "" {
			return nil, "", fmt.Errorf("zookeeper.connect %q: %q is no host:port", s, server)
		}
		servers = append(servers, net.JoinHostPort(host, port))
	}
	if len(servers) == 0 {
		return nil, "", fmt.Errorf("zookeeper.connect %q names no server", s)
	}
	return servers, chroot, nil
}

// checkPath refuses what a server would refuse, before it costs a connection.
func checkPath(path string) error {
	switch {
	case path == "/":
		return nil
	case path == "" || path[0] != '/':
		return fmt.Errorf("%w: path %q does not begin with /", ErrBadArguments, path)
	case strings.HasSuffix(path, "/"):
		return fmt.Errorf("%w: path %q ends with /", ErrBadArguments, path)
	case strings.Contains(path, "//"), strings.ContainsRune(path, 0):
		return fmt.Errorf("%w: path %q has an empty or unprintable part", ErrBadArguments, path)
	}
	for _, part := range strings.Split(path[1:], "/") {
		if part == "." || part == ".." {
			return fmt.Errorf("%w: path %q is relative", ErrBadArguments, path)
		}
	}
	return nil
}

// underChroot and fromChroot translate between the cluster's paths and the ensemble's.
func underChroot(chroot, path string) string {
	if path == "/" && chroot != "" {
		return chroot
	}
	return chroot + path
}

func fromChroot(chroot, path string) string {
	if path = strings.TrimPrefix(path, chroot); path == "" {
		return "/"
	}
	return path
}
