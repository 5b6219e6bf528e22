/*
 * The stream to Savepoint. A frame is
 *   u32 length of all that follows | u8 type | u8 flags | u16 op | u32 pid | u64 monotonic ns | fields
 * and a field is u8 tag | u32 length | bytes, all little-endian. FRAME and FIELD in src/tracers/frames.ts.
 */
#ifndef SAVEPOINT_FRAMES_H
#define SAVEPOINT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum frame_type {
  FRAME_HELLO = 1,   /* TIME: nanoseconds since 1970 at the frame's own time */
  FRAME_EXEC = 2,    /* EXEC, PARENT, PPID, DEPTH, REPLACES, PROGRAM, CWD, ARGV (NUL after each); of git when held ENV */
  FRAME_EXIT = 3,    /* EXEC, CODE, SIGNAL */
  FRAME_PATH = 4,    /* op; EXEC, PATH, TO, CHANGED, REPLACED; with a NUMBER: waits for REQUEST_RELEASE of it */
  FRAME_LOST = 5,    /* NUMBER: how many frames; flags: why */
  FRAME_END = 6,     /* of the command itself: CODE, SIGNAL; NUMBER: processes that go on, PIDS: the first of them, as u32. What they do is told until REQUEST_LEAVE */
  FRAME_FAILED = 7,  /* the command could not be started: NUMBER is the errno */
  FRAME_BARRIER = 8, /* NUMBER: everything that came before its request has been sent */
  FRAME_UNDONE = 9,  /* EXEC, or with an op its rename of PATH to TO, did not happen after all: the system refused it */
  FRAME_LATE = 10,   /* EXEC was held for as long as is allowed, and goes on */
  FRAME_STOPPED = 11, /* the command; NUMBER: 1, or 0 when it goes on. Only where it cannot be seen from outside */
  FRAME_LEFT = 13,   /* REQUEST_LEAVE is done. NUMBER: processes that go on, PIDS: the first of them, as u32 */
  FRAME_HELD = 20,   /* PATH can be written by a process without another call */
  FRAME_KEPT = 22,   /* op is about to destroy PATH; kept as NUMBER (FLAG_TRUNCATED: not); EXEC, TIME, MODE, UID, GID, MTIME */
  FRAME_SAFE = 26,   /* op is about to destroy PATH, which somebody else has written; with this MTIME it is in a snapshot */
  FRAME_WAITS = 12,  /* of a recording: the command has ended (CODE, SIGNAL), NUMBER processes of it go on and are waited for */
  FRAME_SEEN = 30,     /* in the log of a recording (seen.h): PATH, its NUMBER; op: as what; STAT and TO (of a link) if it is there */
  FRAME_SEEN_AS = 31,  /* NUMBER is seen as op, too */
  FRAME_SAVED = 32,    /* the content of INODE on DEVICE is kept as NUMBER; op: the errno if not; STAT: what it is, if not as seen */
  FRAME_SEEN_ALL = 33, /* the end; NUMBER: lost, EXEC: ignored, PARENT: of others */
  FRAME_STAMPED = 34,  /* the times of INODE on DEVICE are set by the recording itself, by whichever name */
  /* In the log of a spool only (before.h): */
  FRAME_BEFORE = 23, /* PATH is about to be changed by op: MODE, UID, GID, MTIME, INODE of all but directories, TO of a link; of a
                        file its copy as NUMBER (FLAG_TRUNCATED: there is none). FLAG_ABSENT: nothing is there */
  FRAME_MOVED = 24,  /* PATH is about to be renamed to, or exchanged with, TO */
  FRAME_CAPTURED = 25, /* the state before is elsewhere: what this log says of it counts no more */
  FRAME_LOOKED = 21, /* NUMBER: all HELD of that request have been sent; EXEC: processes that could not be looked at */
};

enum frame_flag {
  FLAG_TRUNCATED = 1, /* of EXEC: not all of argv is here */
  FLAG_EMPTIED = 1,   /* of PATH, to be renamed: the run has emptied that file before, so that all that is in it is its own work */
  FLAG_SETUID = 2,    /* of EXEC: the program's set-id bits are without effect here */
  FLAG_DETACHED = 4,  /* of EXEC: who started it cannot be told */
  FLAG_EXISTS = 4,    /* of PATH: something was there before */
  FLAG_DIRECTORY = 8,
  FLAG_LINKED = 16,  /* the file has other names */
  FLAG_OTHERS = 16,  /* of KEPT: nobody in the run has named it before */
  FLAG_LATER = 32,   /* of KEPT: it has changed after the run, as far as that is told, had written it */
  FLAG_UNKNOWN = 32, /* of PATH: the path could not be read or found */
  FLAG_HELD = 64,    /* of EXEC: waits for REQUEST_RELEASE */
  FLAG_PAST = 64,    /* of PATH: it has happened, as watching tells */
  FLAG_ABSENT = 128, /* of PATH: nothing was there at PATH, so that most calls will fail */
  FLAG_MAPPED = 128, /* of HELD: through memory, which moves no timestamp */
};

enum lost_reason {
  LOST_OVERFLOW = 1,
  LOST_ARCHITECTURE = 2,
  LOST_WATCHES = 4,  /* not everything can be watched */
  LOST_EXECUTION = 8 /* what was executed; its changes are told */
};

enum field_tag {
  FIELD_EXEC = 1,
  FIELD_PARENT = 2,
  FIELD_PPID = 3,
  FIELD_DEPTH = 4,
  FIELD_REPLACES = 5,
  FIELD_PROGRAM = 6,
  FIELD_CWD = 7,
  FIELD_ARGV = 8,
  FIELD_CODE = 9,
  FIELD_SIGNAL = 10,
  FIELD_PATH = 11,
  FIELD_TO = 12,
  FIELD_NUMBER = 13,
  FIELD_TIME = 14,
  FIELD_ENV = 15, /* NAME=value, NUL after each */
  FIELD_MODE = 21, /* of SEEN: the rights of its group, where an access list has them */
  FIELD_MTIME = 22,
  FIELD_UID = 23,
  FIELD_GID = 24,
  FIELD_DIRECTORY = 26, /* of KEPT: mode, owner and group of the directory, as u32 */
  FIELD_INODE = 25, /* of HELD: when the file has several names; u64 */
  FIELD_CHANGED = 27,   /* of PATH: when its content last changed, if that was since the beginning; ns since 1970 */
  FIELD_REPLACED = 28,  /* the same of what is at TO */
  FIELD_PIDS = 29,
  FIELD_STAT = 30,
  FIELD_DEVICE = 31,
  FIELD_THREAD = 20, /* of PATH: who calls, when it is not the first thread of its process */
};

enum { FRAME_ROOM = 64 * 1024 };

/* One frame while it is made. */
struct frame {
  size_t length;
  uint8_t bytes[FRAME_ROOM];
};

void frame_begin(struct frame *frame, enum frame_type type, uint16_t op, uint32_t pid);
/* For what is told later than it happened. */
void frame_time(struct frame *frame, uint64_t monotonic);
void frame_flag(struct frame *frame, uint8_t flags);
void frame_number(struct frame *frame, enum field_tag tag, uint32_t number);
void frame_long(struct frame *frame, enum field_tag tag, uint64_t number);
/* Left out when there is no room. */
bool frame_bytes(struct frame *frame, enum field_tag tag, const void *bytes, size_t length);

/* Its bytes are whole then; stream_put does it as well. */
void frame_finish(struct frame *frame);

/* The stream itself: any thread may put frames, one thread flushes. Putting never waits for the reader. */
struct stream;
struct stream *stream_open(int fd, int wake_fd);
void stream_put(struct stream *stream, struct frame *frame);
/* Writes what is there as far as the reader takes it; returns whether all of it went, or the reader is gone. */
bool stream_flush(struct stream *stream);
/* For the very last frames: waits for a slow reader. */
void stream_drain(struct stream *stream);
/* The last frame for this reader; waits for it. From here on only what commands tell is kept, for the next one, until that says that it is there. */
void stream_leave_to_next(struct stream *stream, struct frame *frame);
void stream_resume(struct stream *stream);
bool stream_is_left(const struct stream *stream);
/* When a frame was put last, of the monotonic clock. */
uint64_t stream_told_ns(const struct stream *stream);
bool stream_is_broken(const struct stream *stream);

uint64_t in_ns(struct timespec time);
uint64_t monotonic_ns(void);
/* Since 1970. */
uint64_t realtime_ns(void);

#endif
