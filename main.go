// Command barnabas is a Kafka broker of the classic kind, coordinated by ZooKeeper, together with its tools: the first word after the program's name says which.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v2"

	"barnabas/tools/native"
)

// version is set when a release is built.
var version = "dev"

func main() {
	app := &cli.App{
		Name:                   "barnabas",
		Usage:                  "a ZooKeeper-coordinated Kafka broker and its tools",
		Version:                version,
		HideHelpCommand:        true,
		Suggest:                true,
		UseShortOptionHandling: true,
		Commands:               slices.Concat([]*cli.Command{quickstartCommand(), brokerCommand(), zookeeperCommand(), consoleCommand(), lastWillCommand(), native.CompleteCommand()}, native.Commands(), kafkaCommands()),
		ExitErrHandler:         func(*cli.Context, error) {}, // errors are printed once, below
	}
	err := app.Run(native.Arrange(os.Args, app.Commands))
	var code cli.ExitCoder
	switch {
	case err == nil:
	case errors.As(err, &code):
		os.Exit(code.ExitCode())
	default:
		fmt.Fprintln(os.Stderr, "barnabas:", err)
		os.Exit(1)
	}
}

// exitCode ends the process with a code of its own after the command has said all there is to say.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit %d", int(c)) }

// ExitCode is the code of the process.
func (c exitCode) ExitCode() int { return int(c) }

func newLog() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(os.Stdout)
	log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: "2006-01-02 15:04:05.000", DisableColors: true})
	if level, err := logrus.ParseLevel(os.Getenv("BARNABAS_LOG_LEVEL")); err == nil {
		log.SetLevel(level)
	}
	return logrus.NewEntry(log)
}
