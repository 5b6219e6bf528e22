# Sourced with $savepoint_root set: sets $savepoint_node to the program that runs savepoint, or to nothing when a setup is
# needed first, and $savepoint_flags to the words that it is given.
#
# build/ready holds the node that the build chose (relative when it lies in node_modules), and those words, and is dated at
# the start of that build. A source, or a directory that lost or gained one, that is newer than it has not been built: that holds
# after an edit, a `git pull` and a checkout of an older commit alike. One `find` over all sources takes about 1 ms,
# and unlike a list of globs it cannot miss a new depth of directories. It complains when it cannot go back to where it
# was started, which is nobody's business here.
savepoint_node=
if [ -f "$savepoint_root/build/ready" ] && [ -f "$savepoint_root/build/savepoint.node" ] && [ -f "$savepoint_root/dist/cli.cjs" ] &&
  [ -f "$savepoint_root/node_modules/.package-lock.json" ] && {
  IFS= read -r savepoint_node && IFS= read -r savepoint_flags; } <"$savepoint_root/build/ready"; then
  case $savepoint_node in /*) ;; *) savepoint_node=$savepoint_root/$savepoint_node ;; esac
  if ! [ -x "$savepoint_node" ] || [ -n "$(find "$savepoint_root/src" "$savepoint_root/native" "$savepoint_root/scripts" "$savepoint_root/package.json" \
    "$savepoint_root/package-lock.json" -newer "$savepoint_root/build/ready" -print -quit 2>/dev/null)" ]; then
    savepoint_node=
  fi
else
  savepoint_node=
fi
