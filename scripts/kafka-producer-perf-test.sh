#!/bin/sh
exec "$(dirname "$0")/barnabas.sh" kafka-producer-perf-test "$@"
