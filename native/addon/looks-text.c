/* looksText for JavaScript: what the manifest of a bundle says of paths that settleLooks gave. See looks.h. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "addon.h"
#include "looks.h"

/* All that stands around the path and, twice, the target. */
enum { AROUND_BYTES = 1024 };

/* Where text goes; there is room. */
struct pen {
  char *at;
  /* Files that come one after another are often of the same second. */
  int64_t second;
  char second_text[32];
};

static void put(struct pen *pen, const char *bytes, size_t length) {
  memcpy(pen->at, bytes, length);
  pen->at += length;
}
#define PUT(pen, text) put(pen, text, sizeof(text) - 1)

/* With at least so many digits. */
static void put_number(struct pen *pen, uint64_t number, size_t digits) {
  char text[24], *from = text + sizeof text;
  for (; number > 0 || digits > 0; number /= 10, digits -= digits > 0) *--from = (char)('0' + number % 10);
  put(pen, from, (size_t)(text + sizeof text - from));
}

/* As timeText in src/record/time-text.ts. */
static void put_time(struct pen *pen, int64_t ns) {
  int64_t second = ns / 1000000000 - (ns % 1000000000 < 0);
  if (second != pen->second || pen->second_text[0] == 0) {
    struct tm parts;
    time_t time = (time_t)second;
    gmtime_r(&time, &parts);
    strftime(pen->second_text, sizeof pen->second_text, "%Y-%m-%dT%H:%M:%S.", &parts);
    pen->second = second;
  }
  put(pen, pen->second_text, strlen(pen->second_text));
  put_number(pen, (uint64_t)(ns - second * 1000000000), 9);
  PUT(pen, "Z");
}

static void put_type(struct pen *pen, uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: PUT(pen, "file"); break;
    case S_IFDIR: PUT(pen, "directory"); break;
    case S_IFLNK: PUT(pen, "symlink"); break;
    case S_IFIFO: PUT(pen, "fifo"); break;
    default: PUT(pen, "socket"); break;
  }
}

/* As toState in src/record/states.ts. */
static void put_state(struct pen *pen, const struct seen_frame *frame) {
  if (frame->stat == NULL) {
    PUT(pen, "{\"exists\":false}");
    return;
  }
  struct logged_stat stat;
  memcpy(&stat, frame->stat, sizeof stat);
  PUT(pen, "{\"exists\":true,\"type\":\"");
  put_type(pen, stat.mode);
  PUT(pen, "\",\"mode\":");
  put_number(pen, stat.mode & 07777, 1);
  PUT(pen, ",\"uid\":");
  put_number(pen, stat.uid, 1);
  PUT(pen, ",\"gid\":");
  put_number(pen, stat.gid, 1);
  PUT(pen, ",\"mtime\":\"");
  put_time(pen, stat.mtime_ns);
  PUT(pen, "\"");
  if (S_ISREG(stat.mode)) {
    PUT(pen, ",\"size\":");
    put_number(pen, stat.size, 1);
  } else if (S_ISLNK(stat.mode)) {
    PUT(pen, ",\"target\":\"");
    put(pen, frame->target.bytes, frame->target.length);
    PUT(pen, "\"");
  }
  PUT(pen, "}");
}

static void put_operations(struct pen *pen, uint32_t as) {
  char *from = pen->at;
  if ((as & SEEN_READ) != 0) PUT(pen, ",\"read\"");
  if ((as & SEEN_LOOKED_AT) != 0) PUT(pen, ",\"existence\"");
  if ((as & SEEN_LISTED) != 0) PUT(pen, ",\"directory\"");
  if ((as & SEEN_EXECUTED) != 0) PUT(pen, ",\"execute\"");
  if (pen->at == from) PUT(pen, "[");
  else *from = '[';
  PUT(pen, "]");
}

/* As a file in BundleWriter (src/record/bundle-writer.ts), behind another one. */
static void put_look(struct pen *pen, const struct seen_frame *frame, uint32_t as) {
  PUT(pen, ",\n    {\"path\":\"");
  put(pen, frame->path.bytes, frame->path.length);
  PUT(pen, "\",\"operations\":");
  put_operations(pen, as);
  PUT(pen, ",\"before\":");
  const char *state = pen->at;
  put_state(pen, frame);
  size_t length = (size_t)(pen->at - state);
  PUT(pen, ",\"after\":");
  put(pen, state, length);
  PUT(pen, ",\"git\":{\"in_repo\":false}}");
}

napi_value addon_looks_text(napi_env env, napi_callback_info info) {
  napi_value arguments[5], result;
  struct bytes_view log, settled, out;
  uint64_t from, to;
  if (!get_arguments(env, info, 5, arguments) || !get_buffer(env, arguments[0], &log) || !get_buffer(env, arguments[1], &settled) ||
      !get_size(env, arguments[2], &from) || !get_size(env, arguments[3], &to) || !get_buffer(env, arguments[4], &out)) {
    return NULL;
  }
  struct pen pen = {.at = (char *)out.data};
  uint64_t done = from, count = settled.length / sizeof(struct settled);
  for (; done < to && done < count; done++) {
    struct settled look;
    struct seen_frame frame;
    memcpy(&look, settled.data + done * sizeof look, sizeof look);
    if (!seen_frame_at(&log, look.offset, &frame)) break;
    size_t left = out.length - (size_t)(pen.at - (char *)out.data);
    if (left < AROUND_BYTES + frame.path.length + 2 * frame.target.length) break;
    put_look(&pen, &frame, look.as);
  }
  if (napi_create_object(env, &result) != napi_ok || !set_number(env, result, "done", (double)(done - from)) ||
      !set_number(env, result, "bytes", (double)(pen.at - (char *)out.data))) {
    return NULL;
  }
  return result;
}
