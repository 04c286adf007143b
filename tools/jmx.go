package tools

import (
	"fmt"
	"io"

	"barnabas/tools/options"
)

var jmxOptions = []options.Option{
	{Name: "attributes", Arity: options.One, Value: "String: name", Doc: "Attributes to show, separated by commas."},
	{Name: "date-format", Arity: options.One, Value: "String: format", Doc: "How times are written."},
	{Name: "help", Doc: "Print this text."},
	{Name: "jmx-auth-prop", Arity: options.One, Value: "String: jmx-auth-prop", Doc: "User and password, as username=password."},
	{Name: "jmx-ssl-enable", Arity: options.One, Value: "Boolean: ssl-enable", Doc: "Connect by TLS. (default: false)"},
	{Name: "jmx-url", Arity: options.One, Value: "String: service-url", Doc: "The address of the Java process. (default: service:jmx:rmi:///jndi/rmi://:9999/jmxrmi)"},
	{Name: "object-name", Arity: options.Many, Value: "String: name", Doc: "An object to show, with wild cards. Any number of times."},
	{Name: "one-time", Arity: options.Maybe, Value: "Boolean: one-time", Doc: "Show it once. (default: false)"},
	{Name: "report-format", Arity: options.One, Value: "String: report-format", Doc: "original, properties, csv or tsv. (default: original)"},
	{Name: "reporting-interval", Arity: options.One, Value: "Integer: ms", Doc: "Milliseconds between two reports; -1 is one report. (default: 2000)"},
	{Name: "version", Doc: "Print the version."},
	{Name: "wait", Doc: "Wait until the objects are there."},
}

// JMX is kafka-jmx, which asks a Java process for its figures. A broker here is none: it serves the same figures over HTTP, and the tool says where.
func JMX(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.tools.JmxTool", intro: "Dump JMX values to standard output.", options: jmxOptions, stdout: stdout, stderr: stderr}
	if set, err := options.Parse(f.options, args); err == nil && set.Has("help") && !compat39() {
		options.WriteHelp(stdout, f.options)
		return 0
	}
	if _, code, over := f.parse(args); over {
		return code
	}
	fmt.Fprintln(stderr, "Barnabas is no Java process and has no JMX: set barnabas.metrics.listener (such as 127.0.0.1:9404) and read the figures, under the names that the JMX exporter gives them, from http://HOST:PORT/metrics.")
	return 1
}
