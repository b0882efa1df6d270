"""Copy the files of this Python that a virtual environment needs to run into an empty root folder.

A step of the Dockerfile, run by the Python of the base: ``collect.py VENV ROOT``. The copy has the
interpreter, its standard library, the shared libraries of both and of the environment, certificates
and accounts; no shell, no package manager. Each Debian package that a file is from is noted as in
distroless images (``/var/lib/dpkg/status.d``), where scanners look, with its licence.
"""

import compileall
import os
import re
import shutil
import ssl
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from py_compile import PycInvalidationMode

USER = 65532
#: How long a program of the base may take.
SECONDS = 600
#: Parts of the standard library that no daemon needs: tests, tools of developers, terminals,
#: windows, pip.
UNUSED = (
    *(
        "__pycache__",
        "site-packages",
        "dist-packages",
        "config-*",
        "test",
        "tests",
        "idlelib",
        "lib2to3",
        "ensurepip",
    ),
    *(
        "pydoc_data",
        "tkinter",
        "turtle*",
        "venv",
        "curses",
        "_curses*.so",
        "_tkinter*.so",
        "_gdbm*.so",
        "_dbm*.so",
    ),
    *("readline*.so", "_test*.so", "xxlimited*.so"),
)
#: Loaded by glibc when a thread is cancelled or ends, and by no program's header.
LOADED_LATE = ("libgcc_s.so.1",)
TEXTS = {
    "etc/passwd": (
        f"root:x:0:0:root:/:/sbin/nologin\nsyncer:x:{USER}:{USER}:syncer:/:/sbin/nologin\n"
    ),
    "etc/group": f"root:x:0:\nsyncer:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
#: Copied where the base has them.
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
#: A file of the package whose script writes the certificates.
CERTIFICATES_FROM = Path("/usr/sbin/update-ca-certificates")
SYSTEM = (
    *(
        "/etc/os-release",
        "/etc/debian_version",
        "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",
        "/etc/ssl/openssl.cnf",
    ),
    CERTIFICATES,
)
#: Folders, with their modes. A plugin's packages go into a folder below the first.
FOLDERS = {"plugins": 0o755, "tmp": 0o1777, "proc": 0o755, "sys": 0o755, "dev": 0o755, "run": 0o755}
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


class Root:
    """The folder that becomes the root of the image."""

    def __init__(self, folder: Path) -> None:
        """Create the folder, with the links of the base at the top, such as ``/lib``."""
        self._folder = folder
        folder.mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            if Path("/", name).is_symlink():
                (folder / name).symlink_to(Path("/", name).readlink())
        #: The copied files of the base, by their real paths.
        self.copied: set[Path] = set()

    def copy(self, path: Path) -> None:
        """Copy a file or a folder, with the file that a link leads to."""
        if path.is_dir():
            shutil.copytree(
                path, self._at(path), symlinks=True, ignore=shutil.ignore_patterns(*UNUSED)
            )
            self.copied |= {file for file in path.rglob("*") if self._at(file).is_file()}
            return
        real = path.resolve()
        if real not in self.copied:
            self.copied.add(real)
            shutil.copy2(real, self._made(real))
        if path.parent.resolve() / path.name != real:
            self._made(path).symlink_to(real)

    def write(self, path: str, text: str) -> None:
        """Write a text file."""
        self._made(Path("/", path)).write_text(text)

    def link(self, path: str, target: str) -> None:
        """Make a link, unless the path is there."""
        if not self._at(Path(path)).exists():
            self._made(Path(path)).symlink_to(target)

    def _at(self, path: Path) -> Path:
        """Return the place of a path of the base."""
        return self._folder / str(path.parent.resolve() / path.name).lstrip("/")

    def _made(self, path: Path) -> Path:
        """Return the place of a path of the base, in a folder that is made."""
        found = self._at(path)
        found.parent.mkdir(parents=True, exist_ok=True)
        return found


def libraries(programs: Iterable[Path]) -> Iterator[Path]:
    """Yield the shared libraries and the loader that these programs and extension modules name.

    A module of the standard library whose library the base lacks can't be imported there either.
    """
    for program in programs:
        done = _run("ldd", str(program))
        if "not found" in done.stdout and "lib-dynload" not in program.parts:
            sys.exit(f"{program}: a shared library is missing:\n{done.stdout}")
        yield from (Path(found) for found in _LIBRARY.findall(done.stdout))


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    """Run a program, whether it fails or not; its error output is shown at once."""
    try:
        return subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"").decode(errors="replace")
        end = output[-1000:]
        sys.exit(f"{' '.join(command)}: not done after {SECONDS} s; its output ends with:\n{end}")


def note_packages(root: Root) -> None:
    """Note each Debian package that a copied file is from, with its licence;
    nothing on another base.
    """
    if not shutil.which("dpkg-query"):
        return
    # Before Debian 13, packages had files at the former names of folders, such as /lib.
    paths = [
        name
        for path in sorted(root.copied | {CERTIFICATES_FROM})
        for name in (str(path), str(path).removeprefix("/usr"))
    ]
    found = _run("dpkg-query", "--search", *paths).stdout
    for package in sorted(
        {line.partition(": ")[0] for line in found.splitlines() if not line.startswith("diversion")}
    ):
        name = package.partition(":")[0]
        status = _run("dpkg-query", "--status", package)
        status.check_returncode()
        root.write(f"var/lib/dpkg/status.d/{name}", status.stdout)
        licence = Path("/usr/share/doc", name, "copyright")
        if licence.exists():
            root.copy(licence)


def copy_python(root: Root, venv: Path) -> None:
    """Copy the interpreter, under the names that the environment has for it,
    and the standard library.
    """
    root.copy(Path(sys.executable).resolve())
    for name in (venv / "bin").glob("python*"):
        target = name.parent / name.readlink()
        if venv not in target.parents:
            root.copy(target)
    root.copy(Path(sysconfig.get_path("stdlib")))


def copy_libraries(root: Root, venv: Path) -> None:
    """Copy the shared libraries that the copied programs name,
    and the extension modules of the environment.
    """
    programs = [path for path in root.copied if ".so" in path.suffixes or path.parent.name == "bin"]
    found = {
        path for path in libraries((*programs, *venv.rglob("*.so*"))) if venv not in path.parents
    }
    late = {path.with_name(name) for path in found for name in LOADED_LATE}
    for path in sorted(found | {path for path in late if path.exists()}):
        root.copy(path)


def copy_system(root: Root) -> None:
    """Copy the certificates, to the place where OpenSSL looks,
    and files that say what this system is.
    """
    for path in map(Path, SYSTEM):
        if path.exists():
            root.copy(path)
    root.link(ssl.get_default_verify_paths().openssl_cafile, CERTIFICATES)
    for name, text in TEXTS.items():
        root.write(name, text)


def main() -> None:
    """Copy the files for the environment of the first argument into the folder of the second."""
    venv, folder = map(Path, sys.argv[1:])
    root = Root(folder)
    copy_python(root, venv)
    copy_libraries(root, venv)
    copy_system(root)
    note_packages(root)
    for name, mode in FOLDERS.items():
        (folder / name).mkdir()
        (folder / name).chmod(mode)
    _run("ldconfig", "-X", "-r", str(folder)).check_returncode()
    # By content and unchecked: files don't change in an image, and the same files give the same
    # bytecode.
    library = folder / sysconfig.get_path("stdlib").lstrip("/")
    compileall.compile_dir(
        library, quiet=1, stripdir=folder, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
    )


if __name__ == "__main__":
    os.umask(0o022)
    main()
