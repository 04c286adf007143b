#!/bin/sh
exec "$(dirname "$0")/barnabas.sh" kafka-e2e-latency "$@"
