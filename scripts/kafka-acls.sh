#!/bin/sh
exec "$(dirname "$0")/barnabas.sh" kafka-acls "$@"
