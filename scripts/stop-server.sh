#!/bin/sh
# stop-server.sh NAME COMMAND NONE: asks the servers that were started with -daemon and this $LOG_DIR to stop; if there is none, every running `barnabas COMMAND` of this user, as the
# original does. NONE is what to say when there is nothing to stop. A process id that was left behind may be anybody's by now, so what runs under it is looked at.
here=$(cd "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")" && pwd) || exit 1
signal=${SIGNAL:-TERM}
file=${LOG_DIR:-$(dirname "$here")/logs}/$1.pid
running() { # REGULAR EXPRESSION: ids of this user's processes with such arguments; `broker list` and `broker drain` are tools
	ps -U "$(id -u)" -o pid= -o args= | awk -v what="$1" 'match($0, what) && substr($0, RSTART + RLENGTH) !~ /(^| )(list|drain)( |$)/ { print $1 }'
}
pids=
if [ -f "$file" ]; then
	pids=$(running " $2 --config " | awk 'NR == FNR { started[$1]; next } $1 in started' "$file" -)
	rm -f "$file"
fi
if [ -z "$pids" ]; then
	pids=$(running "[ /]barnabas[^ /]* $2( |\$)")
fi
if [ -z "$pids" ]; then
	echo "$3"
	exit 1
fi
# shellcheck disable=SC2086 # one word per process id is meant
kill -s "$signal" $pids
