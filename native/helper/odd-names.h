/*
 * Variables whose names are no identifiers (`a.b`, the functions that bash exports): a shell drops them from its environment before its first
 * line, and `savepoint` is a script. The memory of the shell still has them.
 */
#ifndef SAVEPOINT_ODD_NAMES_H
#define SAVEPOINT_ODD_NAMES_H

/* Prints those that the process was started with, in hexadecimal; nothing where there are none. */
int odd_names_print(const char *pid);
/* Puts what was printed into our own environment. */
void odd_names_take(const char *text);
/* Values that are not UTF-8, as the process was started with them: node, whose child we are, has made text of them. */
void odd_values_take(const char *pid);

#endif
