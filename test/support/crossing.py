"""Two processes that cross each other's way: one calls the same again and again, in vain most of the time; the other brings a file or
a directory, one after the other, to where that looks. With `threads` they are threads of one process that computes beside.
Arguments: directory, kind, how many, `threads` or nothing."""
import hashlib, os, signal, sys, threading

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


def for_ever(action):
    while True:
        call(action)


worker = None
if len(sys.argv) > 4:
    data = bytes(10_000_000)
    for action in [again, lambda: hashlib.sha256(data), lambda: hashlib.sha256(data)]:
        threading.Thread(target=for_ever, args=[action], daemon=True).start()
else:
    worker = os.fork()
    if worker == 0:
        for_ever(again)
for number in range(count):
    call(once, number)
if worker is None:
    os._exit(0)
os.kill(worker, signal.SIGKILL)
os.waitpid(worker, 0)
