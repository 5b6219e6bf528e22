/*
 * What a program was started with that Node takes away from what it starts: descriptors from 3 on, which it closes there, and
 * signals that are ignored (nohup), which it sets back before any of its code runs; how many files may be open (`ulimit -n`),
 * which it raises as far as it may; and that standard input is closed.
 */
#ifndef SAVEPOINT_INHERIT_H
#define SAVEPOINT_INHERIT_H

/*
 * Becomes `command`, with what there is named in its variable SAVEPOINT_INHERITED: "3,7 1,15 1024", descriptors, signals, and the limit. And with
 * what the probe of the first driver says in SAVEPOINT_PROBED, "0 works": from here it takes a tenth of the time.
 */
int inherit(char **command);
/* Where standard input is closed, `inherit` has put something there that can be neither read nor written, which nobody else does. */
void close_closed_input(void);
/* Ignores the signals of a list as above, for what is executed from here. */
void ignore_signals(const char *list);
/* The same of how many files may be open; 0: as it is. */
void limit_files(unsigned count);
/* Closes the descriptors from 3 on that were there when the helper began, but `kept`: they are the command's alone. */
void close_inherited(void);
void note_inherited(int kept);

#endif
