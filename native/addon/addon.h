/*
 * The functions that JavaScript sees. Their contract is src/native/addon.ts; module.c registers them. This folder owns
 * mechanism only: what to capture, skip, retry or restore is decided in TypeScript.
 */
#ifndef SAVEPOINT_ADDON_H
#define SAVEPOINT_ADDON_H

#include <node_api.h>

#define ADDON_FUNCTIONS(X) \
  X(scanDirs, scan_dirs) \
  X(readEntries, read_entries) \
  X(writeFiles, write_files) \
  X(ingestNew, ingest_new) \
  X(ingestRead, ingest_read) \
  X(ingestWindow, ingest_window) \
  X(ingestStore, ingest_store) \
  X(ingestFlush, ingest_flush) \
  X(ingestClose, ingest_close) \
  X(openAt, open_at) \
  X(openRoot, open_root) \
  X(statAt, stat_at) \
  X(mkdirAt, mkdir_at) \
  X(symlinkAt, symlink_at) \
  X(mknodAt, mknod_at) \
  X(linkAt, link_at) \
  X(unlinkAt, unlink_at) \
  X(rmdirAt, rmdir_at) \
  X(renameAt, rename_at) \
  X(readlinkAt, readlink_at) \
  X(chmodAt, chmod_at) \
  X(chownAt, chown_at) \
  X(utimesAt, utimes_at) \
  X(getXattrs, get_xattrs) \
  X(setXattrs, set_xattrs) \
  X(close, close_fd) \
  X(statFd, stat_fd) \
  X(flock, flock_fd) \
  X(syncfs, syncfs_fd) \
  X(startWriteback, start_writeback) \
  X(cloneFd, clone_fd) \
  X(snapshotSubvolume, snapshot_subvolume) \
  X(btrfsDifferences, btrfs_differences) \
  X(subvolumeIdentity, subvolume_identity) \
  X(spreadSubdirs, spread_subdirs) \
  X(dataSegments, data_segments) \
  X(sharesBlocks, shares_blocks) \
  X(statfs, statfs_fd) \
  X(filesystemId, filesystem_id) \
  X(uniqueMount, unique_mount) \
  X(rawArgv, raw_argv) \
  X(peerOf, peer_of) \
  X(terminalModes, terminal_modes) \
  X(setTerminalModes, set_terminal_modes) \
  X(ignoreTerminalStops, ignore_terminal_stops) \
  X(chunk, chunk_buffer) \
  X(hash, hash_bytes) \
  X(hasherNew, hasher_new) \
  X(hasherUpdate, hasher_update) \
  X(hasherDigest, hasher_digest) \
  X(randomBytes, random_bytes) \
  X(trimMemory, trim_memory) \
  X(adoptOrphans, adopt_orphans) \
  X(takeEnd, take_end) \
  X(signalNote, signal_note) \
  X(pidfdOpen, pidfd_open_process) \
  X(pidfdSignal, pidfd_signal) \
  X(snappyCompress, snappy_compress) \
  X(snappyUncompress, snappy_uncompress) \
  X(snappyExpand, snappy_expand) \
  X(sharedMappings, shared_mappings) \
  X(settleLooks, settle_looks) \
  X(looksText, looks_text) \
  X(pipe, make_pipe)

#define X(js_name, c_name) napi_value addon_##c_name(napi_env env, napi_callback_info info);
ADDON_FUNCTIONS(X)
#undef X

#endif
