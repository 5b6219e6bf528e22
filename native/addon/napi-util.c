#define _GNU_SOURCE
#include "napi-util.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uchar.h>

static bool throw_type(napi_env env, const char *message) {
  napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", message);
  return false;
}

bool get_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *values) {
  size_t given = count;
  if (napi_get_cb_info(env, info, &given, values, NULL, NULL) != napi_ok) return false;
  if (given < count) return throw_type(env, "too few arguments");
  return true;
}

bool get_int(napi_env env, napi_value value, int *out) {
  int32_t number;
  if (napi_get_value_int32(env, value, &number) != napi_ok) return throw_type(env, "expected an integer");
  *out = number;
  return true;
}

bool get_u32(napi_env env, napi_value value, uint32_t *out) {
  if (napi_get_value_uint32(env, value, out) != napi_ok) return throw_type(env, "expected an unsigned integer");
  return true;
}

bool get_size(napi_env env, napi_value value, uint64_t *out) {
  double number;
  if (napi_get_value_double(env, value, &number) != napi_ok || !(number >= 0 && number <= 9007199254740992.0)) {
    return throw_type(env, "expected a number from 0 to 2^53");
  }
  *out = (uint64_t)number;
  return true;
}

bool get_bool(napi_env env, napi_value value, bool *out) {
  if (napi_get_value_bool(env, value, out) != napi_ok) return throw_type(env, "expected a boolean");
  return true;
}

bool get_i64(napi_env env, napi_value value, int64_t *out) {
  bool lossless = false;
  if (napi_get_value_bigint_int64(env, value, out, &lossless) != napi_ok || !lossless) {
    return throw_type(env, "expected a bigint of 64 bits");
  }
  return true;
}

bool get_buffer(napi_env env, napi_value value, struct bytes_view *out) {
  bool is_buffer = false;
  void *data;
  if (napi_is_buffer(env, value, &is_buffer) != napi_ok || !is_buffer ||
      napi_get_buffer_info(env, value, &data, &out->length) != napi_ok) {
    return throw_type(env, "expected a Buffer");
  }
  out->data = data;
  return true;
}

bool get_path(napi_env env, napi_value value, struct raw_path *out) {
  char16_t inline_units[sizeof out->inline_bytes];
  char16_t *units = inline_units;
  size_t length;
  out->bytes = out->inline_bytes;
  if (napi_get_value_string_utf16(env, value, NULL, 0, &length) != napi_ok) {
    return throw_type(env, "expected a latin1 string");
  }
  if (length >= sizeof out->inline_bytes) {
    units = malloc((length + 1) * sizeof *units);
    out->bytes = malloc(length + 1);
  }
  bool done = false;
  if (units == NULL || out->bytes == NULL) {
    throw_errno(env, ENOMEM, "malloc", NULL, 0);
  } else if (napi_get_value_string_utf16(env, value, units, length + 1, &length) != napi_ok) {
    throw_type(env, "expected a latin1 string");
  } else {
    char16_t all = 0;
    for (size_t i = 0; i < length; i++) {
      all |= units[i];
      out->bytes[i] = (char)units[i];
    }
    out->bytes[length] = 0;
    out->length = length;
    done = all <= 0xff;
    if (!done) throw_errno(env, EINVAL, "latin1", NULL, 0);
  }
  if (units != inline_units) free(units);
  if (!done) free_path(out);
  return done;
}

void free_path(struct raw_path *path) {
  if (path->bytes != path->inline_bytes) free(path->bytes);
  path->bytes = path->inline_bytes;
}

/* glibc's strerrorname_np is younger than some systems we build on. */
static void errno_name(int error, char *out, size_t size) {
#define NAME(e) {e, #e}
  static const struct {
    int error;
    const char *name;
  } names[] = {
      NAME(EPERM), NAME(ENOENT), NAME(ESRCH), NAME(EINTR), NAME(EIO), NAME(ENXIO), NAME(E2BIG), NAME(ENOEXEC),
      NAME(EBADF), NAME(ECHILD), NAME(EAGAIN), NAME(ENOMEM), NAME(EACCES), NAME(EFAULT), NAME(ENOTBLK), NAME(EBUSY),
      NAME(EEXIST), NAME(EXDEV), NAME(ENODEV), NAME(ENOTDIR), NAME(EISDIR), NAME(EINVAL), NAME(ENFILE), NAME(EMFILE),
      NAME(ENOTTY), NAME(ETXTBSY), NAME(EFBIG), NAME(ENOSPC), NAME(ESPIPE), NAME(EROFS), NAME(EMLINK), NAME(EPIPE),
      NAME(EDOM), NAME(ERANGE), NAME(EDEADLK), NAME(ENAMETOOLONG), NAME(ENOLCK), NAME(ENOSYS), NAME(ENOTEMPTY),
      NAME(ELOOP), NAME(ENOMSG), NAME(EIDRM), NAME(ENOSTR), NAME(ENODATA), NAME(ETIME), NAME(ENOSR), NAME(ENOLINK),
      NAME(EPROTO), NAME(EMULTIHOP), NAME(EBADMSG), NAME(EOVERFLOW), NAME(EILSEQ), NAME(EUSERS), NAME(ENOTSOCK),
      NAME(EDESTADDRREQ), NAME(EMSGSIZE), NAME(EPROTOTYPE), NAME(ENOPROTOOPT), NAME(EPROTONOSUPPORT),
      NAME(EOPNOTSUPP), NAME(EAFNOSUPPORT), NAME(EADDRINUSE), NAME(EADDRNOTAVAIL), NAME(ENETDOWN), NAME(ENETUNREACH),
      NAME(ENETRESET), NAME(ECONNABORTED), NAME(ECONNRESET), NAME(ENOBUFS), NAME(EISCONN), NAME(ENOTCONN),
      NAME(ESHUTDOWN), NAME(ETIMEDOUT), NAME(ECONNREFUSED), NAME(EHOSTDOWN), NAME(EHOSTUNREACH), NAME(EALREADY),
      NAME(EINPROGRESS), NAME(ESTALE), NAME(EUCLEAN), NAME(EREMOTEIO), NAME(EDQUOT), NAME(ENOMEDIUM),
      NAME(EMEDIUMTYPE), NAME(ECANCELED), NAME(ENOKEY), NAME(EKEYEXPIRED), NAME(EKEYREVOKED), NAME(EKEYREJECTED),
      NAME(EOWNERDEAD), NAME(ENOTRECOVERABLE), NAME(EHWPOISON),
  };
#undef NAME
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (names[i].error == error) {
      snprintf(out, size, "%s", names[i].name);
      return;
    }
  }
  snprintf(out, size, "E%d", error);
}

static bool set_latin1(napi_env env, napi_value object, const char *name, const char *text, size_t length) {
  napi_value value;
  return napi_create_string_latin1(env, text, length, &value) == napi_ok &&
         napi_set_named_property(env, object, name, value) == napi_ok;
}

napi_value make_errno_error(napi_env env, int error, const char *syscall, const char *path, size_t path_length) {
  char code[32];
  char description[128] = "";
  char message[512];
  errno_name(error, code, sizeof code);
  const char *text = strerror_r(error, description, sizeof description);
  int shown = path_length > 300 ? 300 : (int)path_length;
  if (path != NULL) {
    snprintf(message, sizeof message, "%s: %c%s, %s '%.*s'", code, tolower((unsigned char)text[0]), text + 1, syscall,
             shown, path);
  } else {
    snprintf(message, sizeof message, "%s: %c%s, %s", code, tolower((unsigned char)text[0]), text + 1, syscall);
  }
  napi_value message_value, code_value, result;
  if (napi_create_string_latin1(env, message, NAPI_AUTO_LENGTH, &message_value) != napi_ok ||
      napi_create_string_latin1(env, code, NAPI_AUTO_LENGTH, &code_value) != napi_ok ||
      napi_create_error(env, code_value, message_value, &result) != napi_ok) {
    return NULL;
  }
  set_number(env, result, "errno", -error);
  set_latin1(env, result, "syscall", syscall, NAPI_AUTO_LENGTH);
  if (path != NULL) set_latin1(env, result, "path", path, path_length);
  return result;
}

void throw_errno(napi_env env, int error, const char *syscall, const char *path, size_t path_length) {
  napi_value value = make_errno_error(env, error, syscall, path, path_length);
  if (value != NULL) napi_throw(env, value);
}

napi_value make_undefined(napi_env env) {
  napi_value value;
  return napi_get_undefined(env, &value) == napi_ok ? value : NULL;
}

napi_value make_number(napi_env env, double number) {
  napi_value value;
  return napi_create_double(env, number, &value) == napi_ok ? value : NULL;
}

napi_value make_buffer_copy(napi_env env, const void *data, size_t length) {
  napi_value value;
  void *copy;
  if (napi_create_buffer(env, length, &copy, &value) != napi_ok) return NULL;
  if (length > 0) memcpy(copy, data, length);
  return value;
}

static void free_data(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  free(data);
}

napi_value make_buffer_owning(napi_env env, void *data, size_t length) {
  napi_value value;
  if (length > 0 && napi_create_external_buffer(env, length, data, free_data, NULL, &value) == napi_ok) return value;
  // An empty buffer, or an engine that forbids external memory.
  value = make_buffer_copy(env, data, length);
  free(data);
  return value;
}

bool set_number(napi_env env, napi_value object, const char *name, double number) {
  napi_value value;
  return napi_create_double(env, number, &value) == napi_ok &&
         napi_set_named_property(env, object, name, value) == napi_ok;
}

bool set_i64(napi_env env, napi_value object, const char *name, int64_t number) {
  napi_value value;
  return napi_create_bigint_int64(env, number, &value) == napi_ok &&
         napi_set_named_property(env, object, name, value) == napi_ok;
}

bool set_u64(napi_env env, napi_value object, const char *name, uint64_t number) {
  napi_value value;
  return napi_create_bigint_uint64(env, number, &value) == napi_ok &&
         napi_set_named_property(env, object, name, value) == napi_ok;
}
