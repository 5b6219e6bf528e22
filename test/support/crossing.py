"""Two processes that cross each other's way: one calls the same again and again, in vain most of the time; the other brings a file or
a directory, one after the other, to where that looks. Arguments: directory, kind, how many."""
import os, signal, sys

directory, kind, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.chdir(directory)


def empty():
    os.close(os.open("slot", os.O_WRONLY | os.O_TRUNC))


def bring_over(number):
    os.rename(f"file-{number}", "slot")


def bring_and_take_back(number):
    os.rename(f"file-{number}", "slot")
    os.rename("slot", f"file-{number}")


def bring_something_to_replace_it(number):
    os.rename(f"file-{number}", "slot")
    os.close(os.open("new", os.O_WRONLY | os.O_CREAT))
    os.rename("slot", f"file-{number}")
    call(os.unlink, "new")


def point_at(number):
    os.symlink(f"directory-{number}", "next")
    os.rename("next", "current")


again, once = {
    "empty": (empty, bring_over),
    "delete": (lambda: os.unlink("slot"), bring_and_take_back),
    "replace": (lambda: os.rename("new", "slot"), bring_something_to_replace_it),
    "make": (lambda: os.mkdir("current/x"), point_at),
    "open": (lambda: os.close(os.open("current/x", os.O_WRONLY | os.O_CREAT)), point_at),
}[kind]


def call(action, *arguments):
    try:
        action(*arguments)
    except OSError:
        pass


worker = os.fork()
if worker == 0:
    while True:
        call(again)
for number in range(count):
    call(once, number)
os.kill(worker, signal.SIGKILL)
os.waitpid(worker, 0)
