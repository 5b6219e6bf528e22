"""Two processes: one moves each file of the directory to `slot` and back, the other empties whatever `slot` is just then. Arguments:
directory, files."""
import os, sys

directory, files = sys.argv[1], int(sys.argv[2])
os.chdir(directory)
mover = os.fork()
if mover == 0:
    for number in range(files):
        os.rename(f"file-{number}", "slot")
        os.rename("slot", f"file-{number}")
    os._exit(0)
while os.waitpid(mover, os.WNOHANG)[0] == 0:
    try:
        os.close(os.open("slot", os.O_WRONLY | os.O_TRUNC))
    except OSError:
        pass
