package embedded

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Four-letter words to a member of an ensemble that does not lead: it says what it is. What is asked of sessions and watches, the
// leader knows.

// notServing is ZooKeeper's answer of a server that has no leader.
const notServing = "This ZooKeeper instance is not currently serving requests\n"

// mode is what this server is, in ZooKeeper's words.
func (s *Server) mode() string {
	switch {
	case s.ensemble == nil:
		return "standalone"
	case s.engine.Load() != nil:
		return "leader"
	default:
		return "follower"
	}
}

// runDeputy answers a command without an engine.
func (s *Server) runDeputy(name string) string {
	if !slices.Contains(s.cfg.FourLetterWhitelist, name) && !slices.Contains(s.cfg.FourLetterWhitelist, "*") {
		return refusedCommand(name)
	}
	serving := s.ensemble.leader() != ""
	switch name {
	case "ruok":
		return "imok"
	case "envi":
		var w strings.Builder
		writeEnv(&w)
		return w.String()
	}
	switch {
	case !serving && name == "isro":
		return "null"
	case !serving:
		return notServing
	}
	s.mu.Lock()
	conns := len(s.mu.conns)
	s.mu.Unlock()
	var w strings.Builder
	switch name {
	case "isro":
		return "rw"
	case "srvr", "stat":
		zxid, nodes := s.store.counts()
		fmt.Fprintf(&w, "Zookeeper version: %s\n", version)
		if name == "stat" {
			w.WriteString("Clients:\n\n")
		}
		fmt.Fprintf(&w, "Latency min/avg/max: 0/0.0/0\nReceived: 0\nSent: 0\nConnections: %d\nOutstanding: 0\n", conns)
		fmt.Fprintf(&w, "Zxid: 0x%x\nMode: follower\nNode count: %d\n", zxid, nodes)
	case "mntr":
		_, nodes := s.store.counts()
		writeRows(&w, []row{
			{"version", version}, {"server_state", "follower"}, {"num_alive_connections", conns}, {"outstanding_requests", 0}, {"znode_count", nodes},
			{"open_file_descriptor_count", openFiles()}, {"uptime", time.Since(s.started).Milliseconds()},
		})
	case "conf":
		s.writeConf(&w)
	case "dirs":
		s.writeDirs(&w)
	case "srst":
		return "Server stats reset.\n"
	case "crst":
		return "Connection stats reset.\n"
	}
	return w.String()
}
