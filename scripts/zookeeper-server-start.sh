#!/bin/sh
exec "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/start-server.sh" zookeeper zookeeper "$0 [-daemon] zookeeper.properties" "$@"
