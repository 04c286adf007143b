#!/bin/sh
exec "$(dirname "$0")/start-server.sh" kafkaServer broker "$0 [-daemon] server.properties [--override property=value]*" "$@"
