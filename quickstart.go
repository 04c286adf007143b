package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v2"

	"barnabas/config"
	"barnabas/zkstate/embedded"
)

// The quickstart keeps ZooKeeper's state and the logs under one root, so that neither can be lost or mixed up without the other.
//
//	DATA/zookeeper/     the embedded ZooKeeper
//	DATA/broker-N/      the logs of broker N, and its log file when there are several
//
// Everything that can be refused is refused before the first byte is written.

func quickstartCommand() *cli.Command {
	return &cli.Command{
		Name:  "quickstart",
		Usage: "run an embedded ZooKeeper and a broker (or several) on this machine, with nothing to install",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "data", Value: "barnabas-data", Usage: "`DIR` that keeps everything between runs"},
			&cli.IntFlag{Name: "port", Value: 9092, Usage: "`PORT` of the first broker; the others follow"},
			&cli.IntFlag{Name: "zookeeper-port", Value: 2181, Usage: "`PORT` of ZooKeeper"},
			&cli.IntFlag{Name: "console-port", Value: 8092, Usage: "`PORT` of the web console, which the first broker serves; 0 is none"},
			&cli.IntFlag{Name: "brokers", Value: 1, Usage: "how many brokers; each of several is a process of its own"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return fmt.Errorf("quickstart does not know what to do with %q", c.Args().First())
			}
			q := quickstart{data: c.String("data"), port: c.Int("port"), zkPort: c.Int("zookeeper-port"), consolePort: c.Int("console-port"), brokers: c.Int("brokers"), log: newLog()}
			if os.Getenv("BARNABAS_LOG_LEVEL") == "" {
				q.log.Logger.SetLevel(logrus.WarnLevel) // the banner is what a newcomer should see
			}
			return q.run()
		},
	}
}

type quickstart struct {
	data                               string
	port, zkPort, consolePort, brokers int // no console: 0
	log                                *logrus.Entry
}

func (q quickstart) run() error {
	values, err := q.check()
	if err != nil {
		return err
	}
	zk, err := embedded.Start(embedded.Config{
		Addr: loopback(q.zkPort), DataDir: filepath.Join(q.data, "zookeeper"), TickTime: 2 * time.Second, FourLetterWhitelist: []string{"*"}, Log: q.log.WithField("part", "zookeeper"),
	})
	if err != nil {
		return fmt.Errorf("ZooKeeper did not start: %w", err)
	}
	defer zk.Close()
	if q.brokers > 1 {
		return q.runChildren(zk)
	}
	node, err := startNode(values, nil, q.log)
	if err != nil {
		return err
	}
	over, restore := untilStopped(zk.Done(), node.broker.Homeless())
	fmt.Print(q.banner())
	<-over.Done()
	restore()
	fmt.Println("stopping; everything is kept in", q.data)
	return errors.Join(zk.Err(), node.stop())
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (q quickstart) brokerPort(id int) int { return q.port + id - 1 }
func (q quickstart) brokerDir(id int) string {
	return filepath.Join(q.data, fmt.Sprintf("broker-%d", id))
}
func (q quickstart) zookeeperFile() string { return filepath.Join(q.data, "zookeeper") }

// check refuses what cannot work, without touching anything. It returns the configuration of the first broker.
func (q quickstart) check() (*config.Values, error) {
	if q.brokers < 1 {
		return nil, fmt.Errorf("--brokers %d: at least one is needed", q.brokers)
	}
	if q.data == "" {
		return nil, errors.New("--data needs a folder")
	}
	if err := q.checkPorts(); err != nil {
		return nil, err
	}
	values, err := config.New(q.settings(1))
	if err != nil {
		return nil, err
	}
	if dirs := values.LogDirs(); !slices.Equal(dirs, []string{q.brokerDir(1)}) {
		return nil, fmt.Errorf("log.dirs would take the data folder %q for %q; choose one without a comma, and without a blank at its ends, with --data", q.data, dirs)
	}
	return values, q.checkData()
}

// asked is a port that something is to listen on, and the flag that chooses another.
type asked struct {
	port      int
	who, flag string
}

func (q quickstart) checkPorts() error {
	ports := []asked{{q.zkPort, "ZooKeeper", "--zookeeper-port"}}
	for id := 1; id <= q.brokers; id++ {
		ports = append(ports, asked{q.brokerPort(id), fmt.Sprintf("broker %d", id), "--port"})
	}
	if q.consolePort != 0 {
		ports = append(ports, asked{q.consolePort, "the web console", "--console-port"})
	}
	taken := map[int]asked{}
	for _, p := range ports {
		if other, twice := taken[p.port]; twice {
			return fmt.Errorf("port %d is meant for %s and for %s; choose another with %s or %s", p.port, other.who, p.who, other.flag, p.flag)
		}
		taken[p.port] = p
	}
	for _, p := range ports {
		l, err := net.Listen("tcp", loopback(p.port))
		if err != nil {
			return fmt.Errorf("port %d, meant for %s, is in use or not allowed (%v); choose another with %s", p.port, p.who, errors.Unwrap(err), p.flag)
		}
		l.Close()
	}
	return nil
}

func (q quickstart) checkData() error {
	info, err := os.Stat(q.data)
	if errors.Is(err, os.ErrNotExist) {
		parent := filepath.Dir(filepath.Clean(q.data))
		for {
			if _, err := os.Stat(parent); err == nil || parent == filepath.Dir(parent) {
				break
			}
			parent = filepath.Dir(parent)
		}
		return writable(parent, q.data)
	}
	if err != nil {
		return fmt.Errorf("the data folder %s cannot be read: %w", q.data, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is a file, not a folder; choose another place with --data", q.data)
	}
	if err := writable(q.data, q.data); err != nil {
		return err
	}
	entries, err := os.ReadDir(q.data)
	if err != nil {
		return fmt.Errorf("the data folder %s cannot be read: %w", q.data, err)
	}
	if _, err := os.Stat(q.zookeeperFile()); err == nil || len(entries) == 0 {
		return nil
	}
	for _, e := range entries {
		meta, err := os.ReadFile(filepath.Join(q.data, e.Name(), "meta.properties"))
		if err != nil {
			continue
		}
		id := "unknown"
		if _, after, ok := bytes.Cut(meta, []byte("cluster.id=")); ok {
			line, _, _ := bytes.Cut(after, []byte("\n"))
			id = string(line)
		}
		return fmt.Errorf("%s holds logs of the cluster %s, but %s with that cluster's ZooKeeper state is missing; bring it back, or choose an empty folder with --data (nothing was changed)", q.data, id, q.zookeeperFile())
	}
	return fmt.Errorf("%s is neither empty nor a folder that quickstart made; choose another with --data (nothing was changed)", q.data)
}

// writable tells whether this process may create things in dir; shown is the folder that the user named.
func writable(dir, shown string) error {
	if err := syscall.Access(dir, 2 /* W_OK */); err != nil {
		return fmt.Errorf("the data folder %s cannot be written (%v on %s); choose another with --data", shown, err, dir)
	}
	return nil
}

// settings is the configuration of one broker. Replication factors and the minimum ISR fit the number of brokers, so that every client's defaults work.
func (q quickstart) settings(id int) map[string]string {
	factor, minISR := min(q.brokers, 3), 1
	if q.brokers >= 3 {
		minISR = 2
	}
	settings := map[string]string{
		"broker.id":                                strconv.Itoa(id),
		"listeners":                                "PLAINTEXT://" + loopback(q.brokerPort(id)),
		"log.dirs":                                 q.brokerDir(id),
		"zookeeper.connect":                        loopback(q.zkPort),
		"zookeeper.session.timeout.ms":             "6000",
		"num.partitions":                           "1",
		"default.replication.factor":               strconv.Itoa(factor),
		"min.insync.replicas":                      strconv.Itoa(minISR),
		"offsets.topic.replication.factor":         strconv.Itoa(factor),
		"transaction.state.log.replication.factor": strconv.Itoa(factor),
		"transaction.state.log.min.isr":            strconv.Itoa(minISR),
		"group.initial.rebalance.delay.ms":         "0",
		"controlled.shutdown.retry.backoff.ms":     "200", // all stop at once: the last ones find nobody to hand over to
	}
	if id == 1 && q.consolePort != 0 {
		settings["barnabas.console.listener"] = loopback(q.consolePort)
	}
	return settings
}

func (q quickstart) banner() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Barnabas is running.\n\n  ZooKeeper (embedded)  %s\n", loopback(q.zkPort))
	for id := 1; id <= q.brokers; id++ {
		fmt.Fprintf(&b, "  broker %-14d %s   logs in %s\n", id, loopback(q.brokerPort(id)), q.brokerDir(id))
	}
	if q.consolePort != 0 {
		fmt.Fprintf(&b, "  web console           http://%s/\n", loopback(q.consolePort))
	}
	fmt.Fprintf(&b, "\nReplication factor %s and min.insync.replicas %s are the defaults here. Try next:\n\n", q.settings(1)["default.replication.factor"], q.settings(1)["min.insync.replicas"])
	server := loopback(q.port)
	fmt.Fprintf(&b, "  scripts/kafka-topics.sh --bootstrap-server %s --create --topic hello\n", server)
	fmt.Fprintf(&b, "  echo world | scripts/kafka-console-producer.sh --bootstrap-server %s --topic hello\n", server)
	fmt.Fprintf(&b, "  scripts/kafka-console-consumer.sh --bootstrap-server %s --topic hello --partition 0 --offset earliest\n\nCtrl-C stops it and keeps everything.\n", server)
	return b.String()
}

// child is a broker that is a process of its own, so that it can be killed and watched.
type child struct {
	id    int
	cmd   *exec.Cmd
	log   string        // file
	ended chan struct{} // closed when it has; its ProcessState tells how
}

func (q quickstart) startChild(id int) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(q.brokerDir(id), 0o755); err != nil {
		return nil, err
	}
	c := &child{id: id, cmd: exec.Command(self, "broker"), log: filepath.Join(q.data, fmt.Sprintf("broker-%d.log", id)), ended: make(chan struct{})}
	settings := q.settings(id)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		c.cmd.Args = append(c.cmd.Args, "--override", name+"="+settings[name])
	}
	out, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C goes to this process, which stops the brokers before ZooKeeper
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait()
	}()
	return c, nil
}

// runChildren runs each broker as a process of its own. Those that die are reported and left dead.
func (q quickstart) runChildren(zk *embedded.Server) error {
	over, restore := untilStopped(zk.Done()) // before there is a process that would have to be stopped
	defer restore()
	var children []*child
	defer func() {
		for _, c := range children {
			_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		}
		for _, c := range children {
			<-c.ended
		}
	}()
	for id := 1; id <= q.brokers; id++ {
		c, err := q.startChild(id)
		if err != nil {
			return err
		}
		children = append(children, c)
	}
	for _, c := range children {
		if err := q.awaitChild(over, c); err != nil {
			return err
		}
	}
	if over.Err() == nil {
		fmt.Print(q.banner())
		for _, c := range children {
			fmt.Printf("  broker %d is process %d\n", c.id, c.cmd.Process.Pid)
		}
	}
	for _, c := range children {
		go func() {
			select {
			case <-c.ended:
				fmt.Printf("broker %d has ended (%v); the others go on\n", c.id, c.cmd.ProcessState)
			case <-over.Done():
			}
		}()
	}
	<-over.Done()
	restore()
	fmt.Println("stopping; everything is kept in", q.data)
	return zk.Err()
}

// awaitChild waits until a broker listens: after a crash that may take as long as its logs have to be recovered.
func (q quickstart) awaitChild(over context.Context, c *child) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := net.DialTimeout("tcp", loopback(q.brokerPort(c.id)), time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-c.ended:
			return fmt.Errorf("broker %d did not start (%v); %s says why", c.id, c.cmd.ProcessState, c.log)
		case <-over.Done():
			return nil
		case <-again.C:
		}
	}
}
