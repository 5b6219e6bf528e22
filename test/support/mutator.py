"""Changes a directory at random, in as many ways as there are calls for it. Arguments: directory, outside, seed, rounds, threads.

Each round ends with the program `mark` (which asks for a snapshot) and waits for the file OUTSIDE/go-N. With more than one
thread the others go on while `mark` runs, but for the last round.
"""
import ctypes, mmap, os, random, shutil, subprocess, sys, threading, time

directory, outside, seed, rounds, threads = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(directory)
held, mapped = [], []


def exchange(a, b):
    libc.renameat2(-100, os.fsencode(a), -100, os.fsencode(b), 2)


class Mutator:
    def __init__(self, name):
        self.random = random.Random(f"{seed} {name}")
        self.base = name
        os.makedirs(name, exist_ok=True)

    def directories(self):
        return [found for found, _, _ in os.walk(self.base)]

    def files(self):
        return [os.path.join(found, name) for found, _, names in os.walk(self.base)
                for name in names if not name.startswith("map")]

    def directory(self):
        return self.random.choice(self.directories())

    def inner(self):
        return self.random.choice(self.directories()[1:])

    def file(self):
        files = self.files()
        return self.random.choice(files) if files else self.new()

    def new(self):
        return os.path.join(self.directory(), f"n{self.random.randrange(40)}")

    def content(self):
        return os.urandom(self.random.randrange(1, 3000))

    def step(self):
        ops = [self.write] * 4 + [
            self.append, self.unlink, self.mkdir, self.rename, self.move_directory, self.exchange, self.rmtree,
            self.symlink, self.chmod, self.same_times, self.hold, self.write_held, self.map, self.write_mapped,
            self.write_by_child, self.replace_directory, self.write_by_descriptor,
        ]
        if seed % 3 == 0:
            ops.append(self.link)
        try:
            self.random.choice(ops)()
        except (OSError, ValueError, IndexError):
            pass

    def write(self):
        with open(self.new(), "wb") as file:
            file.write(self.content())

    def append(self):
        with open(self.file(), "ab") as file:
            file.write(self.content())

    def unlink(self):
        os.unlink(self.file())

    def mkdir(self):
        os.makedirs(os.path.join(self.new() + "d", "deep"), exist_ok=True)

    def rename(self):
        os.rename(self.file(), self.new())

    def move_directory(self):
        os.rename(self.inner(), self.new() + "d")

    def exchange(self):
        exchange(self.inner(), self.inner())

    def replace_directory(self):
        """Away, changed there, and back again: the same directory with other things in it."""
        name = self.inner()
        away = os.path.join(outside, f"away-{os.path.basename(self.base)}")
        os.rename(name, away)
        with open(os.path.join(away, "changed away"), "wb") as file:
            file.write(self.content())
        os.rename(away, name)

    def rmtree(self):
        if self.random.random() < 0.3:
            shutil.rmtree(self.inner())

    def symlink(self):
        os.symlink(self.file(), self.new())

    def link(self):
        os.link(self.file(), self.new())

    def chmod(self):
        os.chmod(self.file(), self.random.choice([0o600, 0o644, 0o755]))

    def same_times(self):
        """Another content of the same length, and the time as it was."""
        name = self.file()
        before = os.stat(name)
        with open(name, "r+b") as file:
            file.write(os.urandom(min(before.st_size, 8)))
        os.utime(name, ns=(before.st_atime_ns, before.st_mtime_ns))

    def hold(self):
        held.append(os.open(self.file(), os.O_WRONLY | os.O_APPEND))

    def write_held(self):
        if held:
            os.write(self.random.choice(held), self.content())

    def map(self):
        name = os.path.join(self.directory(), f"map{self.random.randrange(9)}")
        with open(name, "a+b") as file:
            os.ftruncate(file.fileno(), 4096)
            mapped.append(mmap.mmap(file.fileno(), 4096))
        if seed % 3 == 0 and self.random.random() < 0.5:
            os.link(name, os.path.join(self.directory(), f"map{self.random.randrange(9)}"))

    def write_mapped(self):
        """A second store to a page that is dirty moves no time."""
        if mapped:
            memory = self.random.choice(mapped)
            memory[self.random.randrange(len(memory))] = self.random.randrange(256)

    def write_by_child(self):
        subprocess.run(["sh", "-c", '(echo child) > "$1"', "sh", self.new()], stderr=subprocess.DEVNULL)

    def write_by_descriptor(self):
        parent = os.open(self.directory(), os.O_RDONLY)
        file = os.open(f"at{self.random.randrange(9)}", os.O_WRONLY | os.O_CREAT, dir_fd=parent)
        os.write(file, self.content())
        os.close(file)
        os.close(parent)


def rest():
    for count in range(1, rounds + 1):
        for _ in range(30):
            own.step()
        if count == rounds:
            stop.set()
            for thread in others:
                thread.join()
        with open("counter", "w") as file:
            file.write(f"{count}\n")
        subprocess.run(["mark"], check=True)
        while not os.path.exists(os.path.join(outside, f"go-{count}")):
            time.sleep(0.005)


def work(name):
    mutator = Mutator(name)
    while not stop.is_set():
        mutator.step()
        time.sleep(0.001)


stop = threading.Event()
own = Mutator("m0")
others = [threading.Thread(target=work, args=(f"m{i}",)) for i in range(1, threads)]
for thread in others:
    thread.start()
rest()
