#!/bin/sh
# --process-role and --node-id of the original are accepted.
exec "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/stop-server.sh" kafkaServer broker "No kafka server to stop"
