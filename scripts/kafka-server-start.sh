#!/bin/sh
exec "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/start-server.sh" kafkaServer broker "$0 [-daemon] server.properties [--override property=value]*" "$@"
