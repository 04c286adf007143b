#!/bin/sh
# --process-role and --node-id of the original are accepted; every broker of this user is stopped.
exec "$(dirname "$0")/stop-server.sh" broker "No kafka server to stop"
