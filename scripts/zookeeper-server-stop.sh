#!/bin/sh
exec "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/stop-server.sh" zookeeper zookeeper "No zookeeper server to stop"
