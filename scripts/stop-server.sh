#!/bin/sh
# stop-server.sh COMMAND NONE: asks every running `barnabas COMMAND` of this user to stop; NONE is what to say when there is none.
signal=${SIGNAL:-TERM}
pids=$(ps -U "$(id -u)" -o pid= -o args= | awk -v command="$1" '$2 ~ /(^|\/)barnabas$/ && $3 == command { print $1 }')
if [ -z "$pids" ]; then
	echo "$2"
	exit 1
fi
# shellcheck disable=SC2086 # one word per process id is meant
kill -s "$signal" $pids
