"""Files of results that grow line by line: one JSON object a line, so that a run can be stopped and go on."""

import datetime
import importlib.metadata
import json
import os


def read_lines(path):
    """All lines, none if there is no file yet."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def append_line(path, line):
    """One line more, with the date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line | {"date": now()}) + "\n")


def now():
    """Universal time, to the minute."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")


def note_versions(path, packages):
    """Say once by what the lines are made."""
    said = {"versions": {name: importlib.metadata.version(name) for name in packages}, "cores": os.cpu_count()}
    if not any(said.items() <= line.items() for line in read_lines(path) if "versions" in line):
        append_line(path, said)


def put_into(page, text, marks):
    """Write what stands between the two marks of a page anew."""
    start, end = marks
    before, _, rest = page.read_text(encoding="utf-8").partition(start)
    after = rest.partition(end)[2]
    page.write_text(f"{before}{start}\n\n{text}\n{end}{after}", encoding="utf-8")
