#!/bin/sh
exec "$(dirname "$0")/start-server.sh" zookeeper zookeeper "$0 [-daemon] zookeeper.properties" "$@"
