"""Files and streams of the command line: pipes, closed streams, full disks, signals, encodings, inputs as outputs."""

import gzip
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from widemargin._model_files import load
from widemargin.datasets import files

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs pipes and signals of POSIX")
LABELS = ["a"] * 10 + ["b"] * 10


@pytest.fixture
def csv(program):
    return program.write("a.csv", "x,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(LABELS)))


@pytest.fixture
def model(program, csv):
    program("train a.csv m --scale standard")
    return program.folder / "m"


def shell(command, **environment):
    command, environment = ["bash", "-c", f"{sys.executable} -m widemargin {command}"], {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


def has_part():
    return any(name.endswith(".part") for name in os.listdir())


@pytest.mark.parametrize(
    "command",
    [
        "train a.csv a.csv",
        "train a.csv b.csv --test b.csv",
        "train a.csv link.csv",
        "predict a.csv m m",
        "predict a.csv m ./a.csv",
        "compress m m",
        "compress m new --onnx new",
    ],
)
def test_an_output_is_never_an_input(command, csv, model, program):
    program.write("b.csv", csv.read_bytes())
    os.link(csv, "link.csv")
    before = {path: path.read_bytes() for path in program.folder.iterdir()}
    assert "are the same file" in program(f"{command} --force", 2).err
    assert {path: path.read_bytes() for path in program.folder.iterdir()} == before


# Pipes, closed, full and narrow streams


def fed(name, content):
    """A named pipe, and the thread that writes the content to it."""
    os.mkfifo(name)
    threading.Thread(target=Path(name).write_bytes, args=(content,), daemon=True).start()


@POSIX
def test_inputs_and_outputs_that_are_pipes(csv, model, program):
    fed("b.csv", csv.read_bytes())
    fed("model", model.read_bytes())
    os.mkfifo("pipe")
    copied: list[bytes] = []
    thread = threading.Thread(target=lambda: copied.append(Path("pipe").read_bytes()), daemon=True)
    thread.start()
    program("predict b.csv model pipe")
    thread.join(timeout=60)
    assert (copied[0].decode().split(), has_part()) == (LABELS, False)
    fed("c.csv", csv.read_bytes())
    fed("63", csv.read_bytes())
    assert "(20 samples, 63)" in program("train c.csv n --test 63 --format csv").out
    fed("d.csv", b"1,2\n1\n")
    program.fails("train d.csv o", "error: d.csv:2: 1 fields")
    os.mkfifo("64")
    program.fails("predict 64 m", "64 has no suffix: give --format csv")


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize(
    ("command", "code", "error"),
    [
        ("train a.csv n >&-", 0, ""),
        ("train a.csv n <&- >&- 2>&-", 0, ""),
        ("info m >&-", 0, ""),
        ("predict a.csv no 2>&-", 1, ""),
        ("predict - m --format csv <&-", 1, "standard input: the file is empty"),
        ("predict a.csv m > /dev/full", 1, "standard output: No space left on device"),
        ("predict a.csv m /dev/full", 1, "/dev/full: No space left on device"),
        ("info m > /dev/full", 1, "standard output: No space left on device"),
    ],
)
def test_closed_and_full_streams(command, code, error, csv, model):
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("needs a device that is full")
    done = shell(command)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("accuracy")]
    assert (done.returncode, lines) == (code, [f"widemargin: error: {error}"] if error else [])
    assert Path("n").exists() == ("train a.csv n" in command)


@pytest.mark.slow
@POSIX
def test_standard_output_by_its_name_closed_by_its_reader_and_of_ascii(csv, program):
    program.write("a.csv", csv.read_text().replace("a\n", "Köln\n"))
    done = shell("train a.csv /dev/stdout --scale standard > m")
    assert load("m").n_features_in_ == 1
    assert ("support vectors" in done.stderr, has_part()) == (True, False)
    done = shell("predict a.csv m | head -n 1")
    assert (done.stdout, "Traceback" in done.stderr, "BrokenPipe" in done.stderr) == ("Köln\n", False, False)
    for environment in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}):
        done = shell("info m", **environment)
        assert (r"K\xf6ln" in done.stdout, done.returncode, done.stderr) == (True, 0, "")
    done = shell("predict a.csv m", PYTHONIOENCODING="ascii")  # labels are UTF-8 in every output
    assert (done.returncode, done.stdout.split()) == (0, ["Köln"] * 10 + ["b"] * 10), done.stderr


# Signals


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize(("name", "ignored"), [("SIGTERM", False), ("SIGHUP", True)])
def test_signals_leave_no_unfinished_file(name, ignored, csv):
    script = f"""
import os, signal, sys
import widemargin
from widemargin.cli import main

if {ignored}:
    signal.signal(signal.{name}, signal.SIG_IGN)
fit = widemargin.DCSVMClassifier.fit
def signalled(self, *args):
    assert any(name.endswith(".part") for name in os.listdir())
    os.kill(os.getpid(), signal.{name})
    return fit(self, *args)
widemargin.DCSVMClassifier.fit = signalled
sys.exit(main(["train", "a.csv", "n"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == (0 if ignored else 128 + getattr(signal, name)), done.stderr
    assert "Traceback" not in done.stderr
    assert not has_part()
    assert Path("n").exists() == ignored


@POSIX
@pytest.mark.parametrize(("data", "name", "code"), [("pipe.csv", "SIGINT", 130), ("-", "SIGTERM", 143)])
def test_a_signal_while_waiting_for_data(data, name, code, program):
    """The copy of a pipe that has no writer, or of standard input, is removed."""
    os.mkfifo("pipe.csv")
    copies = program.folder / "copies"
    copies.mkdir()
    command = [sys.executable, "-m", "widemargin", "train", data, "n", "--format", "csv"]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(copies)}, **pipes) as process:
        deadline = time.monotonic() + 60
        while not any(copies.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(getattr(signal, name))
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert errors == ("widemargin: error: interrupted; nothing was written\n" if name == "SIGINT" else "")
    assert not any(copies.iterdir())
    assert not has_part()


# Sizes


def test_what_expands_to_far_more_than_its_size_is_refused(csv, model, program, monkeypatch):
    X = np.zeros((2000, 400), dtype=np.float32)  # of which models may be many zeros
    X[:, 0] = np.arange(2000)
    np.savez("a.npz", X=X, y=np.arange(2000) % 2)
    with monkeypatch.context() as patch:
        patch.setattr(files, "_ALWAYS_EXPANDED", 10**5)
        patch.setattr(files, "_MOST_EXPANDED", 4)
        program("train a.npz zeros --gamma 1")
        assert load("zeros").n_features_in_ == 400
        assert Path("zeros").stat().st_size > 2000 * 400 * 4
    monkeypatch.setattr(files, "_ALWAYS_EXPANDED", 10**6)
    with zipfile.ZipFile(model, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.npy", bytes(10**7))
    for command in ("info m", "predict m m"):
        program.fails(command, "m: expands to more than ", "200 times its size")
    program.write("b.csv.gz", gzip.compress(csv.read_bytes() + b"1,a\n" * 10**6))
    program.fails("train b.csv.gz n", "b.csv.gz: expands to more than ")
