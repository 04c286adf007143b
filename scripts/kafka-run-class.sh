#!/bin/sh
exec "$(dirname "$0")/barnabas.sh" kafka-run-class "$@"
