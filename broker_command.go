package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v2"

	"barnabas/config"
	"barnabas/tools/native"
)

func brokerCommand() *cli.Command {
	return &cli.Command{
		Name:      "broker",
		Usage:     "run a broker of a cluster; list those that run, or drain one",
		ArgsUsage: "[server.properties]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "`FILE` in Kafka's .properties form, or the same keys as .yaml"},
			&cli.GenericFlag{Name: "override", Usage: "`KEY=VALUE` in place of what the file says; any number of times", Value: &native.Repeated{}},
			&cli.BoolFlag{Name: "help-config", Usage: "print every configuration key and stop"},
		},
		Subcommands: native.BrokerCommands(),
		Action: func(c *cli.Context) error {
			if c.Bool("help-config") {
				if err := config.Own.WriteHelp(os.Stdout); err != nil {
					return err
				}
				return config.Broker.WriteHelp(os.Stdout)
			}
			path, overrides, err := whatToRun(c.String("config"), *c.Generic("override").(*native.Repeated), c.Args().Slice())
			if err != nil {
				return err
			}
			if path == "" && len(overrides) == 0 {
				return errors.New("broker needs --config FILE, such as config/server.properties")
			}
			values, err := config.Load(path, overrides)
			if err != nil {
				return err
			}
			log := newLog()
			log.Infof("Barnabas %s, process %d, starts a broker with its logs in %s, on ZooKeeper at %s", version, os.Getpid(), strings.Join(values.LogDirs(), ", "), values.String("zookeeper.connect"))
			logEffects(values, log)
			will := makeWill(values, log)
			defer will.revoke()
			node, err := startNode(values, will, log)
			if err != nil {
				return err
			}
			log.Infof("stopping: %s", waitForSignal(node.broker.Homeless()))
			if err = node.stop(); err == nil {
				log.Info("stopped: the logs are closed")
			}
			return err
		},
	}
}

// whatToRun reads what follows the options, in the form of kafka-server-start.sh: the file, unless --config named it, and overrides.
func whatToRun(path string, overrides, rest []string) (string, []string, error) {
	if path == "" && len(rest) > 0 {
		path, rest = rest[0], rest[1:]
	}
	for len(rest) > 0 {
		override, joined := strings.CutPrefix(rest[0], "--override=")
		switch {
		case joined:
			rest = rest[1:]
		case rest[0] == "--override" && len(rest) > 1:
			override, rest = rest[1], rest[2:]
		default:
			return "", nil, fmt.Errorf("broker does not know what to do with %q", rest[0])
		}
		overrides = append(overrides, override)
	}
	return path, overrides, nil
}

// logEffects says which keys of a configuration will not do what the user may expect.
func logEffects(v *config.Values, log *logrus.Entry) {
	for _, name := range v.Unknown() {
		log.Warnf("configuration %s is not known and has no effect", name)
	}
	for _, name := range v.WithoutEffect() {
		log.Warnf("configuration %s is accepted but has no effect here", name)
	}
}
