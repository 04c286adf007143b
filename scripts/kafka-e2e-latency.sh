#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/barnabas.sh" kafka-e2e-latency "$@"
