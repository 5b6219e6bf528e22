#!/bin/sh
# Runs a TypeScript or JavaScript file with the node that runs savepoint, after a setup where one is needed.
# usage: with-node.sh FILE [ARGUMENT…]
set -eu
node=$(sh "$(dirname "$0")/setup.sh" </dev/null)
exec "$node" --disable-warning=ExperimentalWarning "$@"
