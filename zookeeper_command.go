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
		Usage:     "run the embedded server of ZooKeeper's protocol, alone or as one of an ensemble",
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
			ctx, restore := untilStopped()
			defer restore()
			return embedded.Serve(ctx, cfg)
		},
	}
}

// waitForSignal returns when the process is asked to stop, or when one of the things it stands on has gone, and tells which. A second signal ends the process at once.
func waitForSignal(gone ...<-chan struct{}) (why string) {
	over, restore := untilStopped(gone...)
	<-over.Done()
	defer restore()
	if cause := context.Cause(over); cause != context.Canceled {
		return cause.Error()
	}
	return "what it stands on has gone"
}

// untilStopped listens from now on until restore: who tells the user to press Ctrl-C must be listening before. A closed terminal asks to stop, too, unless nohup has it passed over.
func untilStopped(gone ...<-chan struct{}) (over context.Context, restore context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	over, restore = signal.NotifyContext(context.Background(), signals...)
	for _, one := range gone {
		go func() {
			select {
			case <-one:
				restore()
			case <-over.Done():
			}
		}()
	}
	return over, restore
}
