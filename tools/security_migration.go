package tools

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"barnabas/config"
	"barnabas/tools/options"
	"barnabas/tools/zkaccess"
	"barnabas/zkstate"
)

var securityMigrationOptions = []options.Option{
	{Name: "enable.path.check", Doc: "Do nothing unless all of Kafka's root nodes exist: a missing one may mean that the chroot is wrong."},
	{Name: "help", Doc: "Print this text."},
	{Name: "version", Doc: "Print the version."},
	{Name: "zk-tls-config-file", Arity: options.One, Value: "String: ZooKeeper TLS configuration", Doc: "File with zookeeper.ssl.* settings; others in it are passed over."},
	{Name: "zookeeper.acl", Arity: options.One, Value: "String", Doc: "secure: only who makes Kafka's nodes may write them, and nobody else may read those with secrets; unsecure: everybody may do everything."},
	{Name: "zookeeper.connect", Arity: options.One, Value: "String", Doc: "ZooKeeper servers as host:port, separated by commas, with an optional chroot. Default: localhost:2181."},
	{Name: "zookeeper.connection.timeout", Arity: options.One, Value: "Integer", Doc: "How long to wait for ZooKeeper, in milliseconds. Default: 30000."},
	{Name: "zookeeper.session.timeout", Arity: options.One, Value: "Integer", Doc: "Timeout of the session, in milliseconds. Default: 30000."},
}

// SecurityMigration is zookeeper-security-migration: it gives Kafka's znodes the access lists that zookeeper.set.acl gives new ones, or takes them away.
func SecurityMigration(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.admin.ZkSecurityMigrator", options: securityMigrationOptions, misread: exception, stdout: stdout, stderr: stderr,
		intro: "ZooKeeper Migration Tool Help. This tool updates the ACLs of znodes as part of the process of setting up ZooKeeper authentication."}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	code, err := migrateSecurity(f, set)
	if err != nil {
		fmt.Fprint(f.stderr, stackTrace(err)) // caught and printed by the original
		return 1
	}
	return code
}

func migrateSecurity(f face, set *options.Set) (code int, err error) {
	tlsFile, err := set.Value("zk-tls-config-file")
	if err != nil {
		return 0, err
	}
	javaOptions := os.Getenv("KAFKA_OPTS")
	access, err := zkaccess.Read(tlsFile, "", javaOptions)
	if err != nil {
		return 0, err
	}
	if !access.Known() {
		if file := config.LoginFile(javaOptions); file != "" {
			fmt.Fprintf(f.stdout, "ERROR: Security isn't enabled, most likely the file isn't set properly: %s\n", file)
		} else {
			fmt.Fprintln(f.stderr, "ERROR: No JAAS configuration file has been specified and no TLS client certificate has been specified. Please make sure that you set the system property "+
				"java.security.auth.login.config or provide a ZooKeeper client TLS configuration via --zk-tls-config-file <filename> identifying at least zookeeper.ssl.client.enable, "+
				"zookeeper.clientCnxnSocket, and zookeeper.ssl.keystore.location")
		}
		return 0, &badArgument{"Incorrect configuration"}
	}
	acl, err := set.Value("zookeeper.acl")
	if err != nil {
		return 0, err
	}
	if acl != "secure" && acl != "unsecure" {
		return f.usage(f.intro), nil
	}
	servers, err := set.Value("zookeeper.connect")
	if err != nil {
		return 0, err
	}
	if servers == "" {
		servers = "localhost:2181"
	}
	session, err := set.Int("zookeeper.session.timeout", toolsTimeout.Milliseconds())
	if err != nil {
		return 0, err
	}
	connection, err := set.Int("zookeeper.connection.timeout", toolsTimeout.Milliseconds())
	if err != nil {
		return 0, err
	}
	zk, err := openZooKeeper(servers, access, acl == "secure", time.Duration(session)*time.Millisecond, time.Duration(connection)*time.Millisecond)
	if err != nil {
		return 0, err
	}
	defer zk.Close()
	return resetACLs(f, zk, set.Has("enable.path.check"))
}

func resetACLs(f face, zk *zkstate.Client, onlyWhole bool) (code int, err error) {
	ctx := context.Background() // large trees take long; a session that ends ends it
	missing, err := zk.MissingSecureRoots(ctx)
	if err != nil {
		return 0, err
	}
	if len(missing) > 0 {
		fmt.Fprintf(f.stdout, "Warning: The following secure root paths do not exist in ZooKeeper: %s\n", strings.Join(missing, ","))
		fmt.Fprintln(f.stdout, "That might be due to an incorrect chroot is specified when executing the command.")
		if onlyWhole {
			fmt.Fprintln(f.stdout, "Exit the command.")
			return 1, nil
		}
	}
	return 0, zk.ResetACLs(ctx)
}
