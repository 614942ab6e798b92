"""The data folder: where it is, what its manifest lists, and files read with their checksum."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

VARIABLE = "TOPRANK_DATA"
MANIFEST = "MANIFEST.json"


class DatasetError(OSError):
    """The data folder, its manifest or one of its files cannot be used; the message says why.

    It is an :class:`OSError`, so ``except OSError`` catches it too. A wrong *argument*, such as the
    name of a set that the folder does not have, is a :class:`ValueError` instead.
    """


def data_folder(data_home: str | os.PathLike[str] | None) -> Path:
    """The folder given, or the one that the environment variable names; it must exist."""
    given = os.environ.get(VARIABLE, "") if data_home is None else os.fspath(data_home)
    if not given:
        raise DatasetError(
            f"No data folder is known. Set the environment variable {VARIABLE} to the folder that "
            f"holds {MANIFEST}, or pass data_home=. load_bundled() and the generators need none."
        )
    folder = Path(given).expanduser()
    if not folder.is_dir():
        source = VARIABLE if data_home is None else "data_home"
        raise DatasetError(
            f"{source} points to {str(folder)!r}, which is not a folder. Let it point to the "
            f"folder that holds {MANIFEST}."
        )
    return folder


def read_manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """The entries of the manifest by the name of their set, each checked for what loading needs."""
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DatasetError(
            f"{str(folder)!r} has no {MANIFEST}, so it is not a data folder or it was copied only "
            "in part. Point to the right folder or copy it again."
        ) from None
    except OSError as error:
        raise DatasetError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # both a decoding error and a JSON error are ValueErrors
        raise DatasetError(
            f"{str(path)!r} is not valid JSON ({error}). Copy the file again from its source."
        ) from error
    entries = content.get("datasets") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not all(_is_entry(entry) for entry in entries):
        raise DatasetError(
            f"{str(path)!r} does not have the expected form: a list 'datasets' of objects with "
            "'name', 'files' and the 'sha256' of every file. Copy the file again from its source."
        )
    return {entry["name"]: entry for entry in entries}


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    files, sums = entry.get("files"), entry.get("sha256")
    return (
        isinstance(files, list)
        and isinstance(sums, dict)
        and all(isinstance(file, str) and isinstance(sums.get(file), str) for file in files)
    )


def unknown_name(name: str, known: Iterable[str], kind: str) -> ValueError:
    """The error for a name that is not among the known ones, with the nearest of them."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"Known: {known}."
    return ValueError(f"There is no {kind} {name!r}. {hint}")


def verified_bytes(folder: Path, file: str, expected: str) -> bytes:
    """The content of a file of the folder, after its SHA-256 sum was found to be the expected one.

    The file is read once: what was summed is what is handed on.
    """
    path = _inside(folder, file)
    remedy = f"Copy it again from the source of the folder, together with {MANIFEST}."
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DatasetError(f"{str(path)!r} is listed in {MANIFEST} but missing. {remedy}") from None
    except OSError as error:
        raise DatasetError(f"{str(path)!r} cannot be read: {error.strerror}. {remedy}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != expected.lower():
        raise DatasetError(
            f"{str(path)!r} is truncated or altered: its {len(content)} bytes have the SHA-256 sum "
            f"{found[:12]}..., {MANIFEST} expects {expected[:12]}.... {remedy}"
        )
    return content


def _inside(folder: Path, file: str) -> Path:
    """The path of a file in the folder; a name that leads out of the folder is refused."""
    path = folder / file
    is_plain = file != "" and file == PurePosixPath(file).name == PureWindowsPath(file).name
    if not is_plain or not path.resolve().is_relative_to(folder.resolve()):
        raise DatasetError(
            f"{MANIFEST} names the file {file!r}, which is not a plain file inside "
            f"{str(folder)!r}; it is not opened. Use a manifest from a source you trust."
        )
    return path
