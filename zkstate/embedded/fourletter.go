package embedded

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// version is what monitors read: the protocol level served. The date is that of the release it stands for.
const version = "3.8.4-barnabas, built on 2024-02-12 22:16 UTC"

// command renders the answer to a four-letter command; it runs on the engine.
type command func(*engine, *strings.Builder)

// commands are the four-letter words of ZooKeeper that this server answers.
var commands = map[string]command{
	"ruok": func(_ *engine, w *strings.Builder) { w.WriteString("imok") },
	"isro": func(_ *engine, w *strings.Builder) { w.WriteString("rw") },
	"srvr": func(e *engine, w *strings.Builder) { e.writeStat(w, false) },
	"stat": func(e *engine, w *strings.Builder) { e.writeStat(w, true) },
	"srst": (*engine).resetServer,
	"crst": (*engine).resetConns,
	"mntr": (*engine).writeMonitor,
	"conf": (*engine).writeConf,
	"cons": (*engine).writeConns,
	"dump": (*engine).writeDump,
	"envi": (*engine).writeEnv,
	"wchs": (*engine).writeWatchSummary,
	"wchp": (*engine).writeWatchesByPath,
	"wchc": (*engine).writeWatchesBySession,
	"dirs": (*engine).writeDirs,
}

// fourLetter finds a command by the first four bytes of a connection. No frame that is not far over the limit begins with one.
func fourLetter(word string) (command, bool) {
	c, ok := commands[word]
	return c, ok
}

// runCommand answers a command, or says that it is not allowed.
func (e *engine) runCommand(name string, c command) string {
	allowed := slices.Contains(e.s.cfg.FourLetterWhitelist, name) || slices.Contains(e.s.cfg.FourLetterWhitelist, "*")
	if !allowed {
		return refusedCommand(name)
	}
	var w strings.Builder
	c(e, &w)
	return w.String()
}

func refusedCommand(name string) string {
	return name + " is not executed because it is not in the whitelist.\n"
}

// clients are the connections in order of their number.
func (e *engine) clients() []*conn {
	out := make([]*conn, 0, len(e.conns))
	for _, id := range slices.Sorted(maps.Keys(e.conns)) {
		out = append(out, e.conns[id])
	}
	return out
}

func (e *engine) writeStat(w *strings.Builder, withClients bool) {
	fmt.Fprintf(w, "Zookeeper version: %s\n", version)
	if withClients {
		w.WriteString("Clients:\n")
		for _, c := range e.clients() {
			e.writeClient(w, c, true)
		}
		w.WriteString("\n")
	}
	counts, l := e.m.Counts(), &e.stats.latency
	fmt.Fprintf(w, "Latency min/avg/max: %d/%s/%d\n", l.min, decimal(l.avg()), l.max)
	fmt.Fprintf(w, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n", e.stats.received, e.stats.sent, len(e.conns), len(e.events))
	fmt.Fprintf(w, "Zxid: 0x%x\nMode: %s\nNode count: %d\n", counts.Zxid, e.s.mode(), counts.Nodes)
	if e.s.ensemble != nil {
		w.WriteString("Proposal sizes last/min/max: -1/-1/-1\n")
	}
}

// decimal prints like Java's DecimalFormat of up to four places, with at least one.
func decimal(v float64) string {
	s := strings.TrimRight(fmt.Sprintf("%.4f", v), "0")
	if strings.HasSuffix(s, ".") {
		s += "0"
	}
	return s
}

func (e *engine) writeClient(w *strings.Builder, c *conn, brief bool) {
	st := &c.stats
	fmt.Fprintf(w, " /%s[1](queued=%d,recved=%d,sent=%d", c.nc.RemoteAddr(), len(c.slots), st.received, st.sent)
	if sid, timeout := e.m.SessionOf(c.id); !brief && sid != 0 {
		fmt.Fprintf(w, ",sid=0x%x,lop=%s,est=%d,to=%d", uint64(sid), st.lastOp, st.established.UnixMilli(), timeout)
		if st.lastXid >= 0 {
			fmt.Fprintf(w, ",lcxid=0x%x", st.lastXid)
		}
		fmt.Fprintf(w, ",lzxid=0x%x,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d", uint64(st.lastZxid), st.lastResponse,
			st.lastLatency, st.latency.min, int64(st.latency.avg()), st.latency.max)
	}
	w.WriteString(")\n")
}

func (e *engine) writeConns(w *strings.Builder) {
	for _, c := range e.clients() {
		e.writeClient(w, c, false)
	}
	w.WriteString("\n")
}

func (e *engine) resetServer(w *strings.Builder) {
	e.stats = serverStats{}
	w.WriteString("Server stats reset.\n")
}

func (e *engine) resetConns(w *strings.Builder) {
	for _, c := range e.clients() {
		c.stats = connStats{established: c.stats.established}
	}
	w.WriteString("Connection stats reset.\n")
}

// writeMonitor prints the figures that ZooKeeper's mntr has and this server knows, by the same names.
func (e *engine) writeMonitor(w *strings.Builder) {
	counts, l := e.m.Counts(), &e.stats.latency
	rows := []row{
		{"version", version},
		{"server_state", e.s.mode()},
		{"avg_latency", decimal(l.avg())},
		{"max_latency", l.max},
		{"min_latency", l.min},
		{"packets_received", e.stats.received},
		{"packets_sent", e.stats.sent},
		{"num_alive_connections", len(e.conns)},
		{"outstanding_requests", len(e.events)},
		{"znode_count", counts.Nodes},
		{"watch_count", counts.Watches},
		{"ephemerals_count", counts.Ephemerals},
		{"approximate_data_size", counts.DataBytes},
		{"global_sessions", counts.Sessions},
		{"local_sessions", 0},
		{"open_file_descriptor_count", openFiles()},
		{"uptime", time.Since(e.s.started).Milliseconds()},
		{"max_client_response_size", -1},
		{"last_client_response_size", -1},
		{"min_client_response_size", -1},
		{"connection_drop_count", 0},
	}
	if en := e.s.ensemble; en != nil {
		st := en.member.Standing()
		rows = append(rows, row{"learners", st.Followers + st.Learners}, row{"synced_followers", st.Synced}, row{"synced_observers", 0}, row{"pending_syncs", st.Learners})
	}
	writeRows(w, rows)
}

// row is a line of mntr.
type row struct {
	name  string
	value any
}

func writeRows(w *strings.Builder, rows []row) {
	for _, r := range rows {
		fmt.Fprintf(w, "zk_%s\t%v\n", r.name, r.value)
	}
}

// openFiles counts this process's file descriptors, -1 where the system does not tell.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(entries)
}

func (e *engine) writeConf(w *strings.Builder) { e.s.writeConf(w) }

func (s *Server) writeConf(w *strings.Builder) {
	c := s.cfg
	port, secure := s.Addr(), "-1"
	id := uint64(0)
	if c.Ensemble != nil {
		id = c.Ensemble.ID
	}
	port = port[strings.LastIndexByte(port, ':')+1:]
	if a := s.SecureAddr(); a != "" {
		secure = a[strings.LastIndexByte(a, ':')+1:]
	}
	fmt.Fprintf(w, "clientPort=%s\nsecureClientPort=%s\ndataDir=%s\ndataDirSize=%d\ndataLogDir=%s\ndataLogSize=0\n", port, secure, c.DataDir, s.store.size(), c.DataDir)
	fmt.Fprintf(w, "tickTime=%d\nmaxClientCnxns=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nclientPortListenBacklog=-1\nserverId=%d\n",
		c.TickTime.Milliseconds(), c.MaxClientConns, c.MinSessionTimeout.Milliseconds(), c.MaxSessionTimeout.Milliseconds(), id)
}

func (e *engine) writeDirs(w *strings.Builder) { e.s.writeDirs(w) }

func (s *Server) writeDirs(w *strings.Builder) {
	fmt.Fprintf(w, "datadir_size: %d\nlogdir_size: 0\n", s.store.size())
}

func (e *engine) writeEnv(w *strings.Builder) { writeEnv(w) }

func writeEnv(w *strings.Builder) {
	host, _ := os.Hostname()
	wd, _ := os.Getwd()
	fmt.Fprintf(w, "Environment:\nzookeeper.version=%s\nhost.name=%s\ngo.version=%s\nos.name=%s\nos.arch=%s\nuser.dir=%s\n",
		version, host, runtime.Version(), runtime.GOOS, runtime.GOARCH, wd)
}

func (e *engine) writeDump(w *strings.Builder) {
	sessions := e.m.Sessions()
	fmt.Fprintf(w, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(sessions), len(sessions))
	owners := 0
	now := e.now().Mono
	for _, s := range sessions {
		fmt.Fprintf(w, "1 expire in %dms:\n\t0x%x\n", s.DeadlineMs-now, uint64(s.ID))
		if len(s.Ephemerals) > 0 {
			owners++
		}
	}
	fmt.Fprintf(w, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", owners)
	for _, s := range sessions {
		if len(s.Ephemerals) == 0 {
			continue
		}
		fmt.Fprintf(w, "0x%x:\n", uint64(s.ID))
		for _, path := range s.Ephemerals {
			fmt.Fprintf(w, "\t%s\n", path)
		}
	}
	fmt.Fprintf(w, "Connections dump:\nConnections Sets (%d)/(%d):\n", min(1, len(e.conns)), len(e.conns))
	if len(e.conns) > 0 {
		fmt.Fprintf(w, "%d expire in %dms:\n", len(e.conns), e.s.cfg.TickTime.Milliseconds())
	}
	for _, c := range e.clients() {
		sid, _ := e.m.SessionOf(c.id)
		fmt.Fprintf(w, "\tip: /%s sessionId: 0x%x\n", c.nc.RemoteAddr(), uint64(sid))
	}
}

func (e *engine) writeWatchSummary(w *strings.Builder) {
	c := e.m.Counts()
	fmt.Fprintf(w, "%d connections watching %d paths\nTotal watches:%d\n", c.WatchingConns, c.WatchedPaths, c.Watches)
}

func (e *engine) writeWatchesByPath(w *strings.Builder) {
	watched := e.m.WatchedPaths()
	for _, path := range slices.Sorted(maps.Keys(watched)) {
		fmt.Fprintln(w, path)
		for _, sid := range watched[path] {
			fmt.Fprintf(w, "\t0x%x\n", uint64(sid))
		}
	}
	w.WriteString("\n")
}

func (e *engine) writeWatchesBySession(w *strings.Builder) {
	bySession := map[int64][]string{}
	for path, sids := range e.m.WatchedPaths() {
		for _, sid := range sids {
			bySession[sid] = append(bySession[sid], path)
		}
	}
	for _, sid := range slices.Sorted(maps.Keys(bySession)) {
		fmt.Fprintf(w, "0x%x\n", uint64(sid))
		for _, path := range slices.Sorted(slices.Values(bySession[sid])) {
			fmt.Fprintf(w, "\t%s\n", path)
		}
	}
	w.WriteString("\n")
}
