"""Builds the wheel with nothing but Python, so that an installation needs no network (PEP 517).

The metadata is that of pyproject.toml, which `clients/python/tests` compares with this file.
"""
import base64
import hashlib
import pathlib
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent
NAME, VERSION = "lightq", "0.1.0"
INFO = f"{NAME}-{VERSION}.dist-info"
METADATA = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: A client of the LightQ message broker: confirms, consumer groups, leases; asyncio and blocking
Requires-Python: >=3.9
License: Apache-2.0
Provides-Extra: fast
Requires-Dist: google-crc32c; extra == "fast"
Description-Content-Type: text/markdown

"""
WHEEL = "Wheel-Version: 1.0\nGenerator: lightq\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _sources():
    return sorted(path for path in (ROOT / NAME).rglob("*") if path.suffix == ".py" or path.name == "py.typed")


def _files():
    """Yields (name in the wheel, bytes)."""
    for path in _sources():
        yield path.relative_to(ROOT).as_posix(), path.read_bytes()
    yield f"{INFO}/METADATA", (METADATA + (ROOT / "README.md").read_text(encoding="utf-8")).encode()
    yield f"{INFO}/WHEEL", WHEEL.encode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel. Returns its name. The same sources give the same bytes."""
    name = f"{NAME}-{VERSION}-py3-none-any.whl"
    record = ""
    with zipfile.ZipFile(pathlib.Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for inner, data in _files():
            wheel.writestr(zipfile.ZipInfo(inner), data, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{inner},sha256={digest},{len(data)}\n"
        wheel.writestr(zipfile.ZipInfo(f"{INFO}/RECORD"), record + f"{INFO}/RECORD,,\n", zipfile.ZIP_DEFLATED)
    return name


def build_sdist(sdist_directory, config_settings=None):
    name = f"{NAME}-{VERSION}.tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory, name), "w:gz") as archive:
        for path in [*_sources(), *(ROOT / each for each in ("README.md", "pyproject.toml", "wheel_backend.py"))]:
            archive.add(path, f"{NAME}-{VERSION}/{path.relative_to(ROOT)}")
    return name


if __name__ == "__main__":
    import sys
    print(build_wheel(sys.argv[1] if len(sys.argv) > 1 else "."))
