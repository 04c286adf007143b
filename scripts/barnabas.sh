#!/bin/sh
# Runs the barnabas binary: $BARNABAS, or the one in the root of this folder's project, which is built on first use in a checkout.
# Java's settings (KAFKA_HEAP_OPTS, KAFKA_OPTS but for the JAAS file that it names, KAFKA_JVM_PERFORMANCE_OPTS, KAFKA_GC_LOG_OPTS, KAFKA_LOG4J_OPTS, JAVA_HOME) are accepted and have no meaning here.
here=$(cd "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")" && pwd) || exit 1
root=$(dirname "$here")
if [ -z "${BARNABAS:-}" ]; then
	BARNABAS=$root/barnabas
	if [ ! -x "$BARNABAS" ]; then
		if [ ! -f "$root/go.mod" ]; then
			BARNABAS=$(command -v barnabas) || { echo "barnabas is neither in $root nor on the path" >&2; exit 1; }
		else
			(cd "$root" && go build -o "barnabas.$$" . && mv "barnabas.$$" barnabas) >&2 || exit 1
		fi
	fi
fi
exec "$BARNABAS" "$@"
