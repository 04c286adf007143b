#!/bin/sh
# start-server.sh NAME COMMAND USAGE [-daemon] [-name X] [-loggc] FILE [ARGUMENT...]: what kafka-server-start.sh and zookeeper-server-start.sh share.
# With -daemon the server runs in the background and writes to $LOG_DIR/NAME.out (logs/ beside scripts/ by default), its process id to NAME.pid. Both are appended to: there may be several
# servers of one name, and what the last one said before it died is wanted most once the next has been started.
here=$(cd "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")" && pwd) || exit 1
name=$1 command=$2 usage=$3
shift 3
daemon=
while [ $# -gt 0 ]; do
	case $1 in
	-daemon) daemon=1; shift ;;
	-name) name=$2; shift 2 ;;
	-loggc) shift ;;
	*) break ;;
	esac
done
if [ $# -lt 1 ] || [ "$1" = --help ]; then
	echo "USAGE: $usage" >&2
	exit 1
fi
if [ "$command" = broker ]; then
	if [ "$1" = --version ]; then
		exec "$here/barnabas.sh" kafka-topics --version
	fi
	if [ -n "$JMX_PORT" ]; then
		echo "JMX_PORT has no effect, since this is no Java process: barnabas.metrics.listener serves the figures over HTTP, under the names of the JMX exporter" >&2
	fi
fi
file=$1
shift
if [ -z "$daemon" ]; then
	exec "$here/barnabas.sh" "$command" --config "$file" "$@"
fi
dir=${LOG_DIR:-$(dirname "$here")/logs}
mkdir -p "$dir" || exit 1
nohup "$here/barnabas.sh" "$command" --config "$file" "$@" >>"$dir/$name.out" 2>&1 </dev/null &
echo $! >>"$dir/$name.pid"
