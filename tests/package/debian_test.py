"""Tests the Debian packages: their contents, lintian, the same bytes twice, the unit, and a whole life in a copy of this
machine's root. The environment names the build directory (LIGHTQ_BUILD_DIR), which scripts/package packs."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["LIGHTQ_BUILD_DIR"])
COPY_REFUSED = 77
EXPOSURE_MAX = 20  # tenths, of systemd-analyze security

SERVER_FILES = """
/etc/lightq/lightq.toml
/usr/bin/lightq
/usr/lib/systemd/system/lightq.service
/usr/share/bash-completion/completions/lightq
/usr/share/doc/lightq/changelog.gz
/usr/share/doc/lightq/copyright
/usr/share/fish/vendor_completions.d/lightq.fish
/usr/share/man/man1/lightq.1.gz
/usr/share/man/man1/lightq-broker.1.gz
/usr/share/zsh/vendor-completions/_lightq
""".split()
DEVELOPMENT_FILES = """
/usr/include/lightq/lightq.h
/usr/include/lightq/lightq.hpp
/usr/include/lightq/queue.hpp
/usr/include/lightq/source.cpp
/usr/lib/LIBRARIES/liblightq.so
/usr/lib/LIBRARIES/liblightq_log.a
/usr/lib/LIBRARIES/cmake/lightq-c/lightq-c-config.cmake
/usr/lib/LIBRARIES/pkgconfig/lightq-c.pc
/usr/lib/LIBRARIES/cmake/lightq-log/lightq-log-config.cmake
/usr/lib/LIBRARIES/pkgconfig/lightq-log.pc
/usr/share/cmake/lightq/lightq-config.cmake
/usr/share/doc/liblightq-dev/copyright
/usr/share/pkgconfig/lightq.pc
""".split()

LIBRARY_FILES = """
/usr/lib/LIBRARIES/liblightq.so.0
/usr/share/doc/liblightq0/changelog.gz
/usr/share/doc/liblightq0/copyright
""".split()

# A copy of this machine's root: what is written goes to memory, and ends with the process.
COPY = """
set -euo pipefail
mount -t tmpfs none "$1" || exit 77
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root" || exit 77
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount -t tmpfs none "$1/root/tmp"
cp -r "$2"/. "$1/root/tmp"
chmod 1777 "$1/root/tmp"
rm -rf "$1/root/var/lib/lightq" "$1/root/etc/lightq"
shift 2
exec chroot "$@"
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def build_packages(folder, umask=-1, **environment):
    run(ROOT / "scripts/package", "--output", folder, BUILD, umask=umask, env=dict(os.environ, **environment))


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    build_packages(folder)
    return {path.name.partition("_")[0]: path for path in folder.glob("*.deb")}


def listed(package):
    """Returns {path: (mode, owner)} of a package's files."""
    lines = run("dpkg-deb", "-c", package).splitlines()
    return {line.split(maxsplit=5)[5].removeprefix("."): tuple(line.split()[:2]) for line in lines}


def test_the_packages_have_their_files(packages):
    assert set(packages) == {"lightq", "liblightq0", "liblightq-dev"}
    for name, expected in {"lightq": SERVER_FILES, "liblightq0": LIBRARY_FILES, "liblightq-dev": DEVELOPMENT_FILES}.items():
        files = {path.partition(" -> ")[0]: about for path, about in listed(packages[name]).items()}
        found = {re.sub(r"^/usr/lib/[\w-]*linux-gnu[\w-]*/", "/usr/lib/", path) for path in files}
        assert not {path.replace("/LIBRARIES/", "/") for path in expected} - found
        assert {owner for _, owner in files.values()} == {"root/root"}
        assert {mode for mode, _ in files.values()} <= {"drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x", "lrwxrwxrwx"}
        assert not [path for path in files if "/usr/local/" in path or "lightq-broker/" in path]
    assert run("dpkg-deb", "-I", packages["lightq"], "conffiles").split() == ["/etc/lightq/lightq.toml"]


def test_the_dependencies_are_those_of_the_program(packages):
    depends = run("dpkg-deb", "-f", packages["lightq"], "Depends")
    for library in ("adduser", "libc6 ", "libzmq5 ", "libssl3 ", "libsodium23 ", "tzdata"):
        assert library in depends + " "
    assert "-dev" not in depends
    depends = run("dpkg-deb", "-f", packages["liblightq0"], "Depends")
    for library in ("libc6 ", "libzmq5 ", "libssl3 ", "libstdc++6 "):
        assert library in depends
    assert "-dev" not in depends and "liblightq" not in depends
    version = run("dpkg-deb", "-f", packages["liblightq0"], "Version").strip()
    assert f"liblightq0 (= {version})" in run("dpkg-deb", "-f", packages["liblightq-dev"], "Depends")
    assert run("dpkg-deb", "-I", packages["liblightq0"], "shlibs").startswith("liblightq 0 liblightq0")


def test_packing_twice_gives_the_same_bytes(packages, tmp_path):
    build_packages(tmp_path, umask=0o077, TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    for package in packages.values():
        assert package.read_bytes() == (tmp_path / package.name).read_bytes(), package.name


def test_lintian_finds_nothing(packages):
    without = []
    if "/usr/lib/pkgconfig/lightq-log.pc" in listed(packages["liblightq-dev"]):
        # A build for /usr/local, as most are, does not use the architecture's directory of Debian.
        without = ["--suppress-tags", "pkg-config-unavailable-for-cross-compilation"]
    found = run("lintian", "--fail-on", "error,warning", "--allow-root", *without, *packages.values())
    assert found == ""


def in_a_copy(tmp_path, packages, command):
    """Runs a command in a copy of this machine's root, with the packages, tests/package and deploy/docker in /tmp."""
    if os.geteuid() != 0:
        pytest.skip("only root can copy the root")
    given = tmp_path / "given"
    given.mkdir()
    for package in packages.values():
        shutil.copy(package, given)
    for folder in (HERE, ROOT / "deploy/docker"):
        shutil.copytree(folder, given / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    copy = tmp_path / "copy"
    copy.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LIGHTQ_")}
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", COPY, "copy", copy, given,
                           copy / "root", "bash", "-euxc", command], capture_output=True, text=True,
                          env=dict(environment, TMPDIR="/tmp"))
    if done.returncode == COPY_REFUSED or done.stderr.startswith("unshare: "):
        pytest.skip("this machine does not permit it: " + done.stderr.strip())
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def older(package, folder):
    """Packs a package again, with a lower version."""
    unpacked = folder / "unpacked"
    run("dpkg-deb", "-R", package, unpacked)
    control = unpacked / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*", "Version: 0.0.1", control.read_text(), flags=re.M))
    run("dpkg-deb", "-Znone", "--root-owner-group", "-b", unpacked, folder / "older.deb")
    return folder / "older.deb"


def test_the_service_is_installed_used_upgraded_and_purged(packages, tmp_path):
    both = {"new": packages["lightq"], "old": older(packages["lightq"], tmp_path)}
    told = in_a_copy(tmp_path, both, f"bash /tmp/package/service_life.sh /tmp/{both['new'].name} /tmp/older.deb")
    assert "service_life: passed" in told


def test_the_unit_is_valid_and_closed(packages, tmp_path):
    run("dpkg-deb", "-x", packages["lightq"], tmp_path / "x")
    unit = tmp_path / "x/usr/lib/systemd/system/lightq.service"
    run("systemd-analyze", "security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", unit)
    in_a_copy(tmp_path, packages, f"dpkg -i /tmp/{packages['lightq'].name} >&2; "
              f"systemd-analyze verify --man=no /usr/lib/systemd/system/{unit.name}")


def test_programs_find_the_library(packages, tmp_path):
    in_a_copy(tmp_path, packages, f"""
        dpkg -i /tmp/{packages['liblightq0'].name} /tmp/{packages['liblightq-dev'].name}
        cd /tmp
        cc -std=c89 package/calling_c/version.c -o calling $(pkg-config --cflags --libs lightq-c)
        ./calling
        cmake -S package/calling_c -B called
        cmake --build called
        ./called/version
        cmake -S package/queueing -B found
        cmake --build found
        ./found/queueing
        g++ -std=c++20 -fsyntax-only $(pkg-config --cflags lightq) package/example/light.cpp
        g++ -std=c++20 package/queueing/queueing.cpp -o bare $(pkg-config --cflags --libs lightq-log)""")


# The steps of deploy/docker/Dockerfile after the build, and `docker run --read-only --cap-drop=ALL`.
CONTAINER = """
/tmp/docker/make_root /tmp/NAME /made
cd /made
[ ! -e bin/sh ] && [ ! -e usr/bin/dpkg ] || exit 1
mount --bind /made /made
mount -o remount,bind,ro /made
mkdir /tmp/volume && chown 65532:65532 /tmp/volume && mount --bind /tmp/volume /made/var/lib/lightq
inside() { chroot --userspec=65532:65532 /made "$@"; }
export LIGHTQ_CONTROL=tcp://127.0.0.1:0 LIGHTQ_HTTP=off
chroot --userspec=65532:65532 /made ENTRYPOINT CMD </dev/null >/tmp/log 2>&1 &
broker=$!
for _ in $(seq 200); do inside HEALTHCHECK && break || sleep 0.05; done
inside HEALTHCHECK || { cat /tmp/log >&2; exit 1; }
inside /usr/bin/lightq topic create letters --type file
echo one | inside /usr/bin/lightq produce letters
inside /usr/bin/lightq consume letters -n 1
kill -TERM $broker
wait $broker
"""


def test_the_container_runs_read_only_and_without_root(packages, tmp_path):
    dockerfile = (ROOT / "deploy/docker/Dockerfile").read_text()
    assert "USER 65532:65532" in dockerfile
    command = CONTAINER.replace("NAME", packages["lightq"].name)
    for instruction in ("ENTRYPOINT", "HEALTHCHECK", "CMD"):
        given = re.search(rf"^{instruction} .*?(\[.*\])$", dockerfile, re.M)[1]
        command = command.replace(instruction, " ".join(json.loads(given)))
    assert in_a_copy(tmp_path, packages, command).split("\n")[-2] == "one"


def test_other_packages_have_the_version_of_the_header():
    header = (ROOT / "include/lightq/version.hpp").read_text()
    port = json.loads((ROOT / "deploy/vcpkg/lightq/vcpkg.json").read_text())
    assert port["version"] == re.search(r'version_text = "([0-9.]+)"', header)[1]
