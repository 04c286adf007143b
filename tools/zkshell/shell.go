package zkshell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"barnabas/tools/zkaccess"
)

const (
	defaultServer  = "localhost:2181"
	defaultTimeout = 30 * time.Second
	exitNotFound   = 127
	maxLine        = 4 << 20
)

// shell is one run.
type shell struct {
	stdout, stderr io.Writer
	out            sync.Mutex // events print from another goroutine
	zk             *session
	timeout        time.Duration
	access         zkaccess.Access
	printWatches   bool
	history        []string // by number of the command
	exitCode       int
	quit           bool
	compat39       bool
}

// failure is an error that a user caused or should see: its text goes to stderr as it is.
type failure struct {
	message string
	code    int
}

func (f *failure) Error() string { return f.message }

func failf(format string, args ...any) error { return &failure{fmt.Sprintf(format, args...), 1} }

// Run is the command. args are those of zookeeper-shell.sh: host:port[/chroot] [-zk-tls-config-file file] [command…]. It returns
// the exit code of the last command: 0, 1 for a failure, 127 for a command that does not exist.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "-server" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(stderr, "USAGE: zookeeper-shell zookeeper_host:port[/path] [-zk-tls-config-file file] [args...]")
		return 1
	}
	s := &shell{
		stdout: stdout, stderr: stderr, timeout: defaultTimeout, printWatches: true,
		compat39: strings.HasPrefix(os.Getenv("BARNABAS_COMPAT"), "3.9"),
	}
	server := args[0]
	if strings.HasPrefix(server, "-") {
		server = defaultServer
	} else {
		args = args[1:]
	}
	command, err := s.options(args)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	fmt.Fprintf(stdout, "Connecting to %s\n", server)
	if err := s.connect(server); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	defer func() { s.zk.drop() }()
	if len(command) > 0 {
		s.execute(command)
		return s.exitCode
	}
	fmt.Fprintf(stdout, "Welcome to ZooKeeper!\nJLine support is disabled\n")
	s.interact(stdin)
	return s.exitCode
}

// options reads what stands before the command; unknown options are passed over, as the original does.
func (s *shell) options(args []string) ([]string, error) {
	tlsFile := ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		opt := args[0]
		args = args[1:]
		switch opt {
		case "-server", "-timeout", "-client-configuration", "-zk-tls-config-file":
			if len(args) == 0 {
				return nil, fmt.Errorf("Error: no argument found for option %s", opt) //nolint:staticcheck // the original's text
			}
			value := args[0]
			args = args[1:]
			switch opt {
			case "-client-configuration":
				return nil, fmt.Errorf("%s is not served; -zk-tls-config-file names a file with zookeeper.ssl.* settings", opt)
			case "-zk-tls-config-file":
				tlsFile = value
			case "-timeout":
				ms, err := strconv.ParseInt(value, 10, 32)
				if err != nil || ms <= 0 {
					return nil, fmt.Errorf("-timeout must be followed by milliseconds: %q", value)
				}
				s.timeout = time.Duration(ms) * time.Millisecond
			}
		}
	}
	var err error
	s.access, err = zkaccess.Read(tlsFile, "", os.Getenv("KAFKA_OPTS"))
	return args, err
}

func (s *shell) connect(server string) error {
	if s.zk != nil {
		s.zk.close()
	}
	zk, err := newSession(server, s.timeout, s.access, s.event)
	if err != nil {
		return err
	}
	s.zk = zk
	return nil
}

// event prints what the session or a watch saw.
func (s *shell) event(state, kind, path string) {
	s.out.Lock()
	defer s.out.Unlock()
	if s.printWatches {
		fmt.Fprintf(s.stdout, "\nWATCHER::\n\nWatchedEvent state:%s type:%s path:%s\n", state, kind, path)
	}
}

// print writes a result without an event falling into it.
func (s *shell) print(text string) {
	s.out.Lock()
	defer s.out.Unlock()
	_, _ = io.WriteString(s.stdout, text)
}

// interact runs the lines of standard input.
func (s *shell) interact(stdin io.Reader) {
	s.zk.connectInBackground()
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, maxLine)
	for !s.quit && lines.Scan() {
		words := split(lines.Text())
		if len(words) == 0 {
			continue
		}
		s.history = append(s.history, lines.Text())
		s.execute(words)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(s.stderr, err)
		s.exitCode = 1
	}
}

var (
	wordPattern   = regexp.MustCompile(`\s*([^"']\S*|"[^"]*"|'[^']*')\s*`)
	quotedPattern = regexp.MustCompile(`^(".*"|'.*')$`)
)

// split breaks a line into words; quotes of either kind hold blanks together.
func split(line string) []string {
	var words []string
	for _, m := range wordPattern.FindAllStringSubmatch(line, -1) {
		w := m[1]
		if strings.TrimSpace(w) == "" && !quotedPattern.MatchString(w) {
			continue
		}
		if quotedPattern.MatchString(w) && len(w) > 1 {
			w = w[1 : len(w)-1]
		}
		words = append(words, w)
	}
	return words
}

// execute runs one command and keeps its exit code.
func (s *shell) execute(words []string) {
	err := s.dispatch(words)
	s.exitCode = 0
	if err == nil {
		return
	}
	s.exitCode = 1
	var f *failure
	if errors.As(err, &f) {
		s.exitCode = f.code
	}
	s.out.Lock()
	defer s.out.Unlock()
	fmt.Fprintln(s.stderr, err)
}

func (s *shell) dispatch(words []string) error {
	name := words[0]
	switch name {
	case "quit":
		s.zk.close()
		s.quit = true
		return nil
	case "redo":
		return s.redo(words)
	case "history":
		s.printHistory()
		return nil
	case "printwatches":
		return s.setPrintWatches(words)
	case "connect":
		server := s.zk.server
		if len(words) > 1 {
			server = words[1]
		}
		if err := s.connect(server); err != nil {
			return failf("%v", err)
		}
		s.zk.connectInBackground()
		return nil
	}
	c, ok := commands[name]
	if !ok {
		s.usage()
		return &failure{"Command not found: Command not found " + name, exitNotFound}
	}
	if s.zk.closed() {
		s.print("Not connected\n")
		return nil
	}
	opts, err := parse(words, c.options)
	if err != nil {
		return err
	}
	if len(opts.args) < c.minArgs+1 {
		return failf("%s", name+" "+c.usage)
	}
	return c.run(s, opts)
}

// number of the command that runs now.
func (s *shell) number() int { return max(len(s.history)-1, 0) }

func (s *shell) redo(words []string) error {
	if len(words) < 2 {
		return nil
	}
	i, err := strconv.Atoi(words[1])
	if err != nil {
		return failf("java.lang.NumberFormatException: For input string: %q", words[1])
	}
	if i < 0 || i >= s.number() {
		return failf("Command index out of range")
	}
	again := split(s.history[i])
	if again[0] == "redo" {
		return failf("No redoing redos")
	}
	s.history[s.number()] = s.history[i]
	return s.dispatch(again)
}

func (s *shell) printHistory() {
	for i := max(s.number()-10, 0); i <= s.number(); i++ {
		line := "null"
		if i < len(s.history) {
			line = s.history[i]
		}
		s.print(fmt.Sprintf("%d - %s\n", i, line))
	}
}

func (s *shell) setPrintWatches(words []string) error {
	s.out.Lock()
	defer s.out.Unlock()
	if len(words) > 1 {
		s.printWatches = words[1] == "on"
		return nil
	}
	state := "off"
	if s.printWatches {
		state = "on"
	}
	fmt.Fprintf(s.stdout, "printwatches is %s\n", state)
	return nil
}

// usage lists the commands, on stderr.
func (s *shell) usage() {
	s.out.Lock()
	defer s.out.Unlock()
	fmt.Fprintln(s.stderr, "ZooKeeper -server host:port [-zk-tls-config-file <file>] cmd args")
	for _, line := range usageLines() {
		fmt.Fprintf(s.stderr, "\t%s\n", line)
	}
}
