/* See ebpf-object.h. */
#define _GNU_SOURCE
#include "ebpf-object.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#ifndef EM_BPF
#define EM_BPF 247
#endif

/* The object itself, as it lies in the repository. Compiled at the root of it. */
__asm__(".section .rodata\n"
        ".balign 8\n"
        "ebpf_object_start:\n"
        ".incbin \"native/ebpf/exec.bpf.o\"\n"
        "ebpf_object_end:\n"
        ".previous\n");
extern const uint8_t ebpf_object_start[], ebpf_object_end[];

enum {
  RELOCATION_MAP = 1,       /* R_BPF_64_64 */
  RELOCATION_FIELD_OFFSET = 0, /* BPF_CORE_FIELD_BYTE_OFFSET */
  PSEUDO_MAP_FD = 1,
  CODE_LOAD_64 = 0x18,
  CLASS = 0x07,
  CLASS_LOAD = 1,
  CLASS_STORE_64 = 3,
  CLASS_ALU = 4,
  CLASS_ALU_64 = 7,
  SOURCE_REGISTER = 0x08,
};

/* Before the relocations in .BTF.ext. */
struct extension_header {
  uint16_t magic;
  uint8_t version, flags;
  uint32_t header_length, functions_offset, functions_length, lines_offset, lines_length, fields_offset, fields_length;
};
struct field_section {
  uint32_t name, count;
};
struct field_relocation {
  uint32_t instruction_offset, type, access, kind;
};

static const Elf64_Ehdr *header_of(const struct object *object) { return (const void *)object->bytes; }

static const Elf64_Shdr *section_at(const struct object *object, uint32_t index) {
  const Elf64_Ehdr *header = header_of(object);
  if (index >= header->e_shnum) return NULL;
  return (const Elf64_Shdr *)(const void *)(object->bytes + header->e_shoff) + index;
}

static const char *section_name(const struct object *object, const Elf64_Shdr *section) {
  const Elf64_Shdr *names = section_at(object, header_of(object)->e_shstrndx);
  if (names == NULL || section->sh_name >= names->sh_size) return "";
  return (const char *)object->bytes + names->sh_offset + section->sh_name;
}

static const Elf64_Shdr *find_section(const struct object *object, const char *name) {
  for (uint32_t i = 1; i < header_of(object)->e_shnum; i++) {
    const Elf64_Shdr *section = section_at(object, i);
    if (strcmp(section_name(object, section), name) == 0) return section;
  }
  return NULL;
}

static bool check(const struct object *object) {
  const Elf64_Ehdr *header = header_of(object);
  if (object->length < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_machine != EM_BPF ||
      header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr) ||
      header->e_shoff > object->length || (object->length - header->e_shoff) / sizeof(Elf64_Shdr) < header->e_shnum)
    return ebpf_fail("the compiled programs are damaged");
  for (uint32_t i = 1; i < header->e_shnum; i++) {
    const Elf64_Shdr *section = section_at(object, i);
    if (section->sh_offset > object->length || section->sh_size > object->length - section->sh_offset)
      return ebpf_fail("the compiled programs are damaged");
  }
  return true;
}

bool object_open(struct object *object) {
  static const char prefix[] = "tp_btf/";
  *object = (struct object){.length = (size_t)(ebpf_object_end - ebpf_object_start)};
  object->bytes = malloc(object->length);
  if (object->bytes == NULL) return ebpf_fail("there is no memory");
  memcpy(object->bytes, ebpf_object_start, object->length);
  if (!check(object)) return false;
  for (uint32_t i = 1; i < header_of(object)->e_shnum; i++) {
    const Elf64_Shdr *section = section_at(object, i);
    const char *name = section_name(object, section);
    if ((section->sh_flags & SHF_EXECINSTR) == 0 || section->sh_size == 0) continue;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return ebpf_fail("the compiled programs have an unknown part, %s", name);
    if (object->count == OBJECT_MAX_PROGRAMS) return ebpf_fail("there are too many compiled programs");
    object->programs[object->count++] =
        (struct program){.tracepoint = name + sizeof prefix - 1,
                         .instructions = (struct instruction *)(void *)(object->bytes + section->sh_offset),
                         .count = (uint32_t)(section->sh_size / sizeof(struct instruction))};
  }
  return true;
}

void object_close(struct object *object) { free(object->bytes); }

static struct instruction *instruction_at(const struct object *object, const Elf64_Shdr *code, uint64_t offset) {
  if (offset % sizeof(struct instruction) != 0 || offset + 2 * sizeof(struct instruction) > code->sh_size) return NULL;
  return (struct instruction *)(void *)(object->bytes + code->sh_offset + offset);
}

static bool fit_maps(struct object *object, const Elf64_Shdr *relocations, find_map *find, void *context) {
  const Elf64_Shdr *code = section_at(object, relocations->sh_info), *symbols = section_at(object, relocations->sh_link);
  const Elf64_Shdr *names = symbols == NULL ? NULL : section_at(object, symbols->sh_link);
  if (code == NULL || names == NULL) return ebpf_fail("the compiled programs are damaged");
  for (uint64_t i = 0; i < relocations->sh_size / sizeof(Elf64_Rel); i++) {
    const Elf64_Rel *one = (const Elf64_Rel *)(const void *)(object->bytes + relocations->sh_offset) + i;
    struct instruction *load = instruction_at(object, code, one->r_offset);
    uint64_t index = ELF64_R_SYM(one->r_info);
    if (load == NULL || load->code != CODE_LOAD_64 || ELF64_R_TYPE(one->r_info) != RELOCATION_MAP ||
        index >= symbols->sh_size / sizeof(Elf64_Sym))
      return ebpf_fail("the compiled programs refer to something unknown");
    const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(object->bytes + symbols->sh_offset) + index;
    const char *name = symbol->st_name < names->sh_size ? (char *)object->bytes + names->sh_offset + symbol->st_name : "";
    int fd = find(name, context);
    if (fd < 0) return ebpf_fail("the compiled programs refer to %s, which is no map", name);
    load->registers = (uint8_t)((load->registers & 0x0f) | PSEUDO_MAP_FD << 4);
    load[0].immediate = fd;
    load[1].immediate = 0;
  }
  return true;
}

/* Where the number is that holds a field's place. */
static bool patch(struct instruction *instruction, uint32_t before, uint32_t after) {
  int class = instruction->code & CLASS;
  if (instruction->code == CODE_LOAD_64 ||
      ((class == CLASS_ALU || class == CLASS_ALU_64) && (instruction->code & SOURCE_REGISTER) == 0)) {
    if (instruction->immediate != (int32_t)before) return false;
    instruction->immediate = (int32_t)after;
    return true;
  }
  if (class < CLASS_LOAD || class > CLASS_STORE_64 || instruction->offset != (int16_t)before || after > INT16_MAX) return false;
  instruction->offset = (int16_t)after;
  return true;
}

enum { MAX_STRUCTURES = 64, MAX_NAMESAKES = 4 };

/* The kernel's structures that have the name of one of ours. Looked for once: the kernel has many. */
struct namesakes {
  uint32_t own, kernel[MAX_NAMESAKES];
  int count;
};

static const struct namesakes *namesakes_of(const struct btf *own, const struct btf *kernel, uint32_t type,
                                            struct namesakes *known) {
  int i = 0;
  while (i < MAX_STRUCTURES && known[i].own != 0 && known[i].own != type) i++;
  if (i == MAX_STRUCTURES) return NULL;
  if (known[i].own == type) return &known[i];
  known[i].own = type;
  for (uint32_t found = 0; (found = btf_find(kernel, BTF_STRUCT, btf_name(own, type), found)) != 0;) {
    if (known[i].count == MAX_NAMESAKES) return NULL;
    known[i].kernel[known[i].count++] = found;
  }
  return &known[i];
}

static bool fit_field(const struct btf *own, const struct btf *kernel, const struct field_relocation *one,
                      struct instruction *instruction, struct namesakes *known) {
  struct btf_way way;
  uint32_t before, after = 0, other;
  const char *name = btf_name(own, one->type);
  if (one->kind != RELOCATION_FIELD_OFFSET) return ebpf_fail("the compiled programs have relocations of kind %u", one->kind);
  if (!btf_read_way(own, one->type, btf_text(own, one->access), &way, &before)) return false;
  const struct namesakes *found = namesakes_of(own, kernel, one->type, known);
  if (found == NULL) return ebpf_fail("this kernel has too many kinds of struct %s", name);
  /* Those that have the field must agree. */
  bool has_field = false;
  for (int i = 0; i < found->count; i++) {
    if (!btf_follow_way(kernel, found->kernel[i], &way, &other)) continue;
    if (has_field && other != after) return ebpf_fail("this kernel has several kinds of struct %s", name);
    after = other;
    has_field = true;
  }
  const char *field = way.length > 0 && way.names[0] != NULL ? way.names[0] : "";
  if (!has_field) return ebpf_fail("this kernel's struct %s has no field %s", name, field);
  if (!patch(instruction, before, after)) return ebpf_fail("the place of %s.%s cannot be written", name, field);
  return true;
}

static bool fit_fields(struct object *object, const struct btf *kernel) {
  const Elf64_Shdr *types = find_section(object, ".BTF"), *extension = find_section(object, ".BTF.ext");
  struct btf own;
  if (types == NULL || extension == NULL) return ebpf_fail("the compiled programs do not say which fields they read");
  if (!btf_open(&own, object->bytes + types->sh_offset, types->sh_size)) return false;
  const struct extension_header *header = (const void *)(object->bytes + extension->sh_offset);
  uint64_t at = (uint64_t)header->header_length + header->fields_offset, end = at + header->fields_length;
  bool ok = header->header_length >= sizeof *header && end <= extension->sh_size;
  if (!ok) ebpf_fail("the compiled programs are damaged");
  const uint8_t *bytes = object->bytes + extension->sh_offset;
  struct namesakes known[MAX_STRUCTURES] = {0};
  uint32_t record_length = 0;
  if (ok && at + sizeof record_length <= end) memcpy(&record_length, bytes + at, sizeof record_length);
  if (ok && record_length != sizeof(struct field_relocation)) ok = ebpf_fail("the compiled programs have an unknown format");
  for (at += sizeof record_length; ok && at + sizeof(struct field_section) <= end;) {
    const struct field_section *part = (const void *)(bytes + at);
    const Elf64_Shdr *code = find_section(object, btf_text(&own, part->name));
    at += sizeof *part;
    if (code == NULL || (end - at) / record_length < part->count) ok = ebpf_fail("the compiled programs are damaged");
    for (uint32_t i = 0; ok && i < part->count; i++, at += record_length) {
      const struct field_relocation *one = (const void *)(bytes + at);
      struct instruction *instruction = instruction_at(object, code, one->instruction_offset);
      if (instruction == NULL) ok = ebpf_fail("the compiled programs are damaged");
      else ok = fit_field(&own, kernel, one, instruction, known);
    }
  }
  btf_close(&own);
  return ok;
}

bool object_fit(struct object *object, const struct btf *kernel, find_map *find, void *context) {
  for (uint32_t i = 1; i < header_of(object)->e_shnum; i++) {
    const Elf64_Shdr *section = section_at(object, i);
    const Elf64_Shdr *code = section_at(object, section->sh_info);
    if (section->sh_type != SHT_REL || code == NULL || (code->sh_flags & SHF_EXECINSTR) == 0) continue;
    if (!fit_maps(object, section, find, context)) return false;
  }
  return fit_fields(object, kernel);
}
