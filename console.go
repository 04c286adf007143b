package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/broker/peer"
	"barnabas/config"
	"barnabas/tools"
	"barnabas/tools/console"
)

// A console asks brokers as any client does: inside a broker by the listener between brokers and as the broker itself, by itself as its property file says.
type servedConsole struct {
	*console.Server
	client *kgo.Client
}

const (
	consoleRequestTime = 4 * time.Second // more than the broker itself may take over a request
	consoleRetryTime   = 15 * time.Second
	consoleDialTime    = 5 * time.Second
)

// consoleOptions are those of the console's client, however it is secured.
func consoleOptions() []kgo.Opt {
	return []kgo.Opt{kgo.ClientID("barnabas-console"), kgo.RequestTimeoutOverhead(consoleRequestTime), kgo.RetryTimeout(consoleRetryTime), kgo.MetadataMinAge(100 * time.Millisecond)}
}

func serveConsole(cfg console.Config, client *kgo.Client) (*servedConsole, error) {
	cfg.Cluster, cfg.Version = cluster.New(client), version
	server, err := console.Serve(cfg)
	if err != nil {
		client.Close()
		return nil, err
	}
	cfg.Log.Infof("the console is at http://%s/, %s", server.Addr(), server.Access())
	return &servedConsole{server, client}, nil
}

func (s *servedConsole) close() error {
	defer s.client.Close()
	return s.Close()
}

// consoleUsers are who may use this broker's console.
func consoleUsers(v *config.Values) (console.Users, error) {
	users, err := console.ReadUsers(v.String("barnabas.console.users"))
	if err != nil {
		return nil, fmt.Errorf("barnabas.console.users: %w", err)
	}
	return users, nil
}

// serveConsole shows the cluster at barnabas.console.listener; an empty one means nowhere.
func (n *node) serveConsole(v *config.Values, users console.Users) error {
	listener := v.String("barnabas.console.listener")
	if listener == "" {
		return nil
	}
	server, err := n.broker.AdvertisedBetweenBrokers()
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(append(consoleOptions(), append(towards(n.broker.BetweenBrokers()), kgo.SeedBrokers(server))...)...)
	if err != nil {
		return err
	}
	n.console, err = serveConsole(console.Config{Listener: listener, Bootstrap: server, Users: users, Ready: n.ready, Log: n.log.WithField("part", "console")}, client)
	if err != nil {
		return fmt.Errorf("barnabas.console.listener %s: %w", listener, err)
	}
	return nil
}

// towards makes a client go to brokers as this broker does.
func towards(s peer.Security) []kgo.Opt {
	var opts []kgo.Opt
	if s.TLS != nil {
		opts = append(opts, kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, consoleDialTime)
			defer cancel()
			return (&tls.Dialer{Config: s.TLS(addr)}).DialContext(ctx, network, addr)
		}))
	} else {
		opts = append(opts, kgo.DialTimeout(consoleDialTime))
	}
	if s.SASL != nil {
		opts = append(opts, kgo.SASL(s.SASL))
	}
	return opts
}

// ready tells why this broker cannot be counted on yet.
func (n *node) ready() error {
	if n.broker.BrokerEpoch() < 0 {
		return errors.New("not registered in ZooKeeper")
	}
	return nil
}

func consoleCommand() *cli.Command {
	return &cli.Command{
		Name: "console", Usage: "serve the web console of a cluster, also of Apache Kafka's", Category: "Native tools", HideHelpCommand: true,
		Description: "A broker serves the same console by itself where barnabas.console.listener is set.\n\n    barnabas console --bootstrap-server kafka1:9092",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "bootstrap-server", Value: "127.0.0.1:9092", EnvVars: []string{"BARNABAS_BOOTSTRAP"}, Usage: "brokers to ask first, as `HOST:PORT[,HOST:PORT...]`"},
			&cli.StringFlag{Name: "command-config", EnvVars: []string{"BARNABAS_COMMAND_CONFIG"}, Usage: "property `FILE` with settings of the client, such as security.protocol"},
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8092", Usage: "where to serve, as `HOST:PORT`; anywhere but on a loopback address it is read-only without --users"},
			&cli.StringFlag{Name: "users", Usage: "`FILE` of lines name:viewer:password and name:operator:password"},
		},
		Action: func(c *cli.Context) error {
			users, err := console.ReadUsers(c.String("users"))
			if err != nil {
				return fmt.Errorf("--users: %w", err)
			}
			client, err := tools.Connect(c.String("bootstrap-server"), c.String("command-config"), "barnabas-console", consoleOptions()[1:]...)
			if err != nil {
				return err
			}
			log := newLog()
			if os.Getenv("BARNABAS_LOG_LEVEL") == "" {
				log.Logger.SetLevel(logrus.WarnLevel)
			}
			served, err := serveConsole(console.Config{Listener: c.String("listen"), Bootstrap: c.String("bootstrap-server"), Users: users, Log: log}, client)
			if err != nil {
				return fmt.Errorf("--listen %s: %w", c.String("listen"), err)
			}
			over, restore := untilStopped()
			fmt.Printf("The console of %s is at http://%s/, %s. Ctrl-C stops it.\n", c.String("bootstrap-server"), served.Addr(), served.Access())
			<-over.Done()
			restore()
			return served.close()
		},
	}
}
