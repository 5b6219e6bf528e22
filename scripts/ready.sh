# Sourced with $root set: sets $node to the program that runs savepoint, or to nothing when a setup is needed first, and
# $flags to the words that it is given.
#
# build/ready holds the node that the build chose (relative when it lies in node_modules), and those words, and is dated at
# the start of that build. A source, or a directory that lost or gained one, that is newer than it has not been built: that holds
# after an edit, a `git pull` and a checkout of an older commit alike. One `find` over all sources takes about 1 ms,
# and unlike a list of globs it cannot miss a new depth of directories. It complains when it cannot go back to where it
# was started, which is nobody's business here.
node=
if [ -f "$root/build/ready" ] && [ -f "$root/build/savepoint.node" ] && [ -f "$root/dist/cli.cjs" ] &&
  [ -f "$root/node_modules/.package-lock.json" ] && {
  IFS= read -r node && IFS= read -r flags; } <"$root/build/ready"; then
  case $node in /*) ;; *) node=$root/$node ;; esac
  if ! [ -x "$node" ] || [ -n "$(find "$root/src" "$root/native" "$root/scripts" "$root/package.json" \
    "$root/package-lock.json" -newer "$root/build/ready" -print -quit 2>/dev/null)" ]; then
    node=
  fi
else
  node=
fi
