#!/bin/sh
# stop-server.sh NAME COMMAND NONE: asks the server that was started with -daemon and this $LOG_DIR to stop; if there is none, every running `barnabas COMMAND` of this user, as the
# original does. NONE is what to say when there is nothing to stop.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
signal=${SIGNAL:-TERM}
file=${LOG_DIR:-$(dirname "$here")/logs}/$1.pid
pids=
if [ -f "$file" ]; then
	pids=$(cat "$file")
	rm -f "$file"
	kill -0 "$pids" 2>/dev/null || pids=
fi
if [ -z "$pids" ]; then
	pids=$(ps -U "$(id -u)" -o pid= -o args= | awk -v command="$2" '$2 ~ /(^|\/)barnabas$/ && $3 == command { print $1 }')
fi
if [ -z "$pids" ]; then
	echo "$3"
	exit 1
fi
# shellcheck disable=SC2086 # one word per process id is meant
kill -s "$signal" $pids
