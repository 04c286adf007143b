package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"barnabas/zkstate/embedded"
)

func zookeeperCommand() *cli.Command {
	return &cli.Command{
		Name:      "zookeeper",
		Usage:     "run the embedded server of ZooKeeper's protocol alone (one process; a cluster uses a real ZooKeeper)",
		ArgsUsage: "[zookeeper.properties]",
		Flags:     []cli.Flag{&cli.StringFlag{Name: "config", Usage: "`FILE` with ZooKeeper's own keys, such as config/zookeeper.properties"}},
		Action: func(c *cli.Context) error {
			path := c.String("config")
			if path == "" {
				path = c.Args().First()
			}
			if path == "" {
				return errors.New("zookeeper needs --config FILE, such as config/zookeeper.properties")
			}
			cfg, err := embedded.ParseConfig(path)
			if err != nil {
				return err
			}
			cfg.Log = newLog().WithField("part", "zookeeper")
			server, err := embedded.Start(cfg)
			if err != nil {
				return err
			}
			cfg.Log.Infof("listening on %s, data in %s", server.Addr(), cfg.DataDir)
			waitForSignal()
			return server.Close()
		},
	}
}

// waitForSignal returns when the process is asked to stop. A second request ends it at once.
func waitForSignal() {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	<-ctx.Done()
	restore()
}
