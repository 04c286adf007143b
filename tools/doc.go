// Package tools holds the commands that people know from Kafka's bin folder, one file each; those of our own face are in native. They keep Kafka's flags, lines, streams and exit codes, since scripts depend on them.
//
// Where releases print differently, 2.8's text is the default and BARNABAS_COMPAT=3.9 gives the newer one.
package tools
