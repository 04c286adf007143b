package embedded

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/magiconair/properties"
	"github.com/sirupsen/logrus"
)

// Defaults of ZooKeeper 3.8.
const (
	defaultTickTime       = 3 * time.Second
	defaultMaxClientConns = 60
	defaultJuteMaxBuffer  = 0xfffff
	defaultContainerCheck = time.Minute
)

// Config says how to serve. A zero field takes ZooKeeper's default; MaxClientConns zero means no limit, as it does there.
type Config struct {
	Addr                string      // host:port to listen on; port 0 picks one
	SecureAddr          string      // host:port for TLS; empty: none
	TLS                 *tls.Config // what the secure port shows and demands
	DataDir             string      // must be writable; created if missing
	TickTime            time.Duration
	MinSessionTimeout   time.Duration // default 2 ticks
	MaxSessionTimeout   time.Duration // default 20 ticks
	MaxClientConns      int           // per client address
	FourLetterWhitelist []string      // default srvr alone; "*" allows all
	JuteMaxBuffer       int           // largest request in bytes; a longer one ends the connection
	SuperDigest         string        // "user:base64(sha1(user:password))" of the superuser
	ExtendedTypes       bool          // TTL nodes
	ReconfigEnabled     bool          // decides only how reconfig is refused
	ContainerCheck      time.Duration // how often empty containers and outlived TTL nodes are looked for
	Ensemble            *Ensemble     // nil: it stands alone
	ListenOnAll         bool          // the ports for the ensemble's other servers are opened on all addresses
	Warnings            []string      // what ParseConfig did not understand; Start logs it
	Log                 *logrus.Entry
}

// ignoredKeys mean something to ZooKeeper and nothing to a server that has its own way to replicate, no snapshots and no HTTP port.
var ignoredKeys = []string{
	"dataLogDir", "initLimit", "syncLimit", "electionAlg", "peerType", "syncEnabled", "standaloneEnabled",
	"autopurge.", "admin.", "metricsProvider.", "clientPortListenBacklog", "snapCount", "preAllocSize", "snapshot.",
	"connectToLearnerMasterLimit", "multiAddress.", "serverCnxnFactory", "globalOutstandingLimit", "authProvider.", "leaderServes",
}

// ParseOption changes how ParseConfig takes a file.
type ParseOption func(*parseRules)

type parseRules struct{ alone bool }

// Alone takes a file that names an ensemble and serves by itself all the same: for test suites that write such files. Servers of
// one file then share nothing.
func Alone() ParseOption { return func(r *parseRules) { r.alone = true } }

// ParseConfig reads a zoo.cfg or zookeeper.properties with the keys of the real ZooKeeper. Keys that it does not know become
// warnings. More than one server.N line makes it one of an ensemble, which dataDir/myid numbers. Log is left to the caller.
func ParseConfig(file string, options ...ParseOption) (Config, error) {
	var rules parseRules
	for _, o := range options {
		o(&rules)
	}
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	p, err := loader.LoadFile(file)
	if err != nil {
		return Config{}, fmt.Errorf("read %s: %w", file, err)
	}
	c := Config{MaxClientConns: defaultMaxClientConns}
	var host, port, secureHost, securePort string
	ssl := tlsKeys{}
	servers := map[string]string{}
	for _, key := range p.Keys() {
		value := strings.TrimSpace(p.GetString(key, ""))
		switch {
		case key == "clientPort":
			port = value
		case key == "clientPortAddress":
			host = value
		case strings.HasPrefix(key, "server."):
			servers[strings.TrimPrefix(key, "server.")] = value
		case key == "secureClientPort":
			securePort = value
		case key == "secureClientPortAddress":
			secureHost = value
		case strings.HasPrefix(key, "ssl."):
			ssl[key] = value
		default:
			if err := c.set(key, value); err != nil {
				return Config{}, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	if len(servers) > 1 && !rules.alone && c.DataDir != "" {
		if err := c.join(servers, &host, &port); err != nil {
			return Config{}, fmt.Errorf("%s: %w", file, err)
		}
	}
	switch {
	case c.DataDir == "":
		return Config{}, fmt.Errorf("%s: dataDir is not set", file)
	case port == "":
		return Config{}, fmt.Errorf("%s: clientPort is not set", file)
	}
	if len(servers) > 1 && rules.alone {
		c.Warnings = append(c.Warnings, fmt.Sprintf("the file names %d servers: this one serves ALONE, with a tree of its own", len(servers)))
	}
	if c.Addr, err = address("clientPort", host, port); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	if securePort != "" {
		c.SecureAddr, err = address("secureClientPort", secureHost, securePort)
		if err == nil {
			c.TLS, err = ssl.config()
		}
		if err != nil {
			return Config{}, fmt.Errorf("%s: %w", file, err)
		}
	}
	return c, nil
}

// address joins host and port; key names the port's setting in an error.
func address(key, host, port string) (string, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", fmt.Errorf("%s is not a port: %q", key, port)
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}

// set takes one key over.
func (c *Config) set(key, value string) (err error) {
	switch key {
	case "dataDir":
		c.DataDir = value
	case "tickTime":
		c.TickTime, err = millis(key, value)
	case "minSessionTimeout":
		c.MinSessionTimeout, err = millis(key, value)
	case "maxSessionTimeout":
		c.MaxSessionTimeout, err = millis(key, value)
	case "znode.container.checkIntervalMs":
		c.ContainerCheck, err = millis(key, value)
	case "maxClientCnxns":
		c.MaxClientConns, err = number(key, value)
	case "jute.maxbuffer":
		c.JuteMaxBuffer, err = number(key, value)
	case "4lw.commands.whitelist":
		for name := range strings.SplitSeq(value, ",") {
			c.FourLetterWhitelist = append(c.FourLetterWhitelist, strings.TrimSpace(name))
		}
	case "DigestAuthenticationProvider.superDigest":
		c.SuperDigest = value
	case "extendedTypesEnabled":
		c.ExtendedTypes = value == "true"
	case "quorumListenOnAllIPs":
		c.ListenOnAll = value == "true"
	case "sslQuorum", "portUnification", "quorum.auth.enableSasl":
		if value == "true" {
			err = fmt.Errorf("%s=true: the servers of this ensemble talk to each other in the clear; keep their ports to themselves", key)
		}
	case "reconfigEnabled":
		c.ReconfigEnabled = value == "true"
	default:
		if strings.HasPrefix(key, "group.") || strings.HasPrefix(key, "weight.") {
			return fmt.Errorf("%s: each server of this ensemble has one vote, and there are no groups", key)
		}
		known := slices.ContainsFunc(ignoredKeys, func(k string) bool {
			return k == key || strings.HasSuffix(k, ".") && strings.HasPrefix(key, k)
		})
		if !known {
			c.Warnings = append(c.Warnings, "unknown key "+key+" is ignored")
		}
	}
	return err
}

func number(key, value string) (int, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < -1 {
		return 0, fmt.Errorf("%s is not a number in range: %q", key, value)
	}
	return int(n), nil
}

// millis reads milliseconds; -1 stands for the default, as in ZooKeeper.
func millis(key, value string) (time.Duration, error) {
	n, err := number(key, value)
	return time.Duration(max(n, 0)) * time.Millisecond, err
}

// withDefaults fills what is zero and refuses what cannot work.
func (c Config) withDefaults() (Config, error) {
	if c.TickTime == 0 {
		c.TickTime = defaultTickTime
	}
	if c.MinSessionTimeout == 0 {
		c.MinSessionTimeout = 2 * c.TickTime
	}
	if c.MaxSessionTimeout == 0 {
		c.MaxSessionTimeout = 20 * c.TickTime
	}
	if c.JuteMaxBuffer <= 0 {
		c.JuteMaxBuffer = defaultJuteMaxBuffer
	}
	if c.ContainerCheck == 0 {
		c.ContainerCheck = defaultContainerCheck
	}
	if c.FourLetterWhitelist == nil {
		c.FourLetterWhitelist = []string{"srvr"}
	}
	switch {
	case c.Log == nil:
		return c, fmt.Errorf("embedded ZooKeeper: Config.Log is nil")
	case c.DataDir == "":
		return c, fmt.Errorf("embedded ZooKeeper: Config.DataDir is empty")
	case c.MinSessionTimeout > c.MaxSessionTimeout:
		return c, fmt.Errorf("embedded ZooKeeper: minSessionTimeout must not be larger than maxSessionTimeout")
	}
	return c, nil
}
