"""Daemonised processes that change the same few paths at the same time, after whoever started them has ended. Arguments: directory,
seed, processes, steps. With no processes the program itself does the work."""
import ctypes, os, random, sys

directory, seed, processes, steps = sys.argv[1], *map(int, sys.argv[2:5])
libc = ctypes.CDLL(None)
names = "abcdef"


def path(chance):
    return "/".join(chance.choice(names) for _ in range(chance.choice([1, 1, 2, 2, 3])))


def write(chance, mode="wb"):
    with open(path(chance), mode) as file:
        file.write(os.urandom(chance.randrange(200)))


def go_there(chance):
    os.chdir(path(chance))
    write(chance)


actions = [write] * 3 + [lambda chance: os.mkdir(path(chance))] * 2 + [lambda chance: os.rename(path(chance), path(chance))] * 2 + [
    lambda chance: os.unlink(path(chance)),
    lambda chance: os.rmdir(path(chance)),
    lambda chance: libc.renameat2(-100, path(chance).encode(), -100, path(chance).encode(), 2),
    lambda chance: write(chance, "ab"),
    lambda chance: os.symlink(path(chance), path(chance)),
    go_there,
    lambda chance: os.chdir(directory),
]


def work(name):
    chance = random.Random(f"{seed} {name}")
    os.chdir(directory)
    for _ in range(steps):
        try:
            chance.choice(actions)(chance)
        except OSError:
            pass


for number in range(processes):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work(number)
        os._exit(0)
if processes == 0:
    work("alone")
