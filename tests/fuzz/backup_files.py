"""The seed inputs of backup_file_fuzz. Used by make_corpus.py."""
import io
import json
import tarfile


def tars(entries):
    """Returns a tar file without the padding that tar adds behind its end."""
    to = io.BytesIO()
    with tarfile.open(fileobj=to, mode="w", format=tarfile.USTAR_FORMAT) as opened:
        for name, content, kind in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.mode = kind, len(content), 0o600
            opened.addfile(entry, io.BytesIO(content))
    return to.getvalue()[:sum(512 + (len(content) + 511) // 512 * 512 for _, content, _ in entries) + 1024]


def backups():
    """Returns backups in one file: docs/log_format.md, "A backup in one file"."""
    files = [("catalogue/00000001/00000000000000000000.seg", b"c" * 600), ("ticket.key", b"")]
    listed = [{"path": path, "bytes": len(content), "crc32c": 7} for path, content in files]
    manifest = json.dumps({"format": 1, "version": "0.1.0", "time_ms": 1, "files": listed}).encode()
    plain = [("backup.json", manifest, b"0")] + [(path, content, b"0") for path, content in files]
    return {"whole": tars(plain), "cut": tars(plain)[:1600], "longer": tars(plain) + b"x", "other_name": tars([plain[0], ("../x", b"c", b"0")]),
            "link": tars([plain[0], (files[0][0], b"", b"2")]), "no_manifest": tars(plain[1:]), "empty": tars([])}
