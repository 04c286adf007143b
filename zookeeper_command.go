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
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "`FILE` with ZooKeeper's own keys, such as config/zookeeper.properties"},
			&cli.BoolFlag{Name: "alone", Usage: "serve although the file names an ensemble: each such server keeps a tree of its own"},
		},
		Action: func(c *cli.Context) error {
			path := c.String("config")
			if path == "" {
				path = c.Args().First()
			}
			if path == "" {
				return errors.New("zookeeper needs --config FILE, such as config/zookeeper.properties")
			}
			var options []embedded.ParseOption
			if c.Bool("alone") {
				options = append(options, embedded.Alone())
			}
			cfg, err := embedded.ParseConfig(path, options...)
			if err != nil {
				return err
			}
			cfg.Log = newLog().WithField("part", "zookeeper")
			ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer restore()
			return embedded.Serve(ctx, cfg)
		},
	}
}

// waitForSignal returns when the process is asked to stop, or when what it stands on has gone. A second signal ends the process at once.
func waitForSignal(gone ...<-chan struct{}) { listenForSignal(gone...)() }

// listenForSignal listens from now on; the function that it returns waits. Who tells the user to press Ctrl-C must be listening before.
func listenForSignal(gone ...<-chan struct{}) (wait func()) {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var lost <-chan struct{}
	if len(gone) > 0 {
		lost = gone[0]
	}
	return func() {
		defer restore()
		select {
		case <-ctx.Done():
		case <-lost:
		}
	}
}
