/*
 * The fields of kernel structures that we read, by name. Where they lie is written into the object as relocations, and is
 * found out when it is loaded, in the kernel's own description of its types (CO-RE).
 */
#ifndef SAVEPOINT_EBPF_KERNEL_TYPES_H
#define SAVEPOINT_EBPF_KERNEL_TYPES_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
  unsigned inum;
};
struct pid_namespace {
  struct ns_common ns;
};
struct upid {
  int nr;
  struct pid_namespace *ns;
};
struct pid {
  unsigned level;
  struct upid numbers[1];
};
typedef struct {
  int counter;
} atomic_t;
struct signal_struct {
  atomic_t live;
  int group_exit_code;
  unsigned flags;
};
struct qstr {
  const unsigned char *name;
};
struct hlist_bl_node {
  struct hlist_bl_node **pprev;
};
struct dentry {
  struct hlist_bl_node d_hash;
  struct dentry *d_parent;
  struct qstr d_name;
};
struct vfsmount {
  struct dentry *mnt_root;
};
struct mount {
  struct mount *mnt_parent;
  struct dentry *mnt_mountpoint;
  struct vfsmount mnt;
};
struct path {
  struct vfsmount *mnt;
  struct dentry *dentry;
};
struct file {
  struct path f_path;
};
struct fs_struct {
  struct path pwd;
};
struct mm_struct {
  struct file *exe_file;
  unsigned long arg_start, arg_end;
};
struct linux_binprm {
  const char *filename, *interp;
};
struct task_struct {
  int pid, tgid;
  int exit_code;
  struct task_struct *real_parent, *group_leader;
  struct pid *thread_pid;
  struct mm_struct *mm;
  struct fs_struct *fs;
  struct signal_struct *signal;
};

#pragma clang attribute pop

#endif
