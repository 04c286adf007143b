#!/bin/sh
exec "$(dirname "$0")/stop-server.sh" zookeeper zookeeper "No zookeeper server to stop"
