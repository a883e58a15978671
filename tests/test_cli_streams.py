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
from widemargin.cli import main
from widemargin.datasets import compressed

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs pipes and signals of POSIX")
PROGRAM = f"{sys.executable} -m widemargin"


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{k},{'ab'[k > 9]}\n" for k in range(20)))
    return path


@pytest.fixture
def model(csv, tmp_path, capsys):
    assert main(["train", str(csv), str(tmp_path / "m"), "--scale", "standard"]) == 0
    capsys.readouterr()
    return tmp_path / "m"


def shell(command, cwd, **environment):
    return subprocess.run(
        ["bash", "-c", command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def parts(folder):
    return [path.name for path in Path(folder).iterdir() if path.name.endswith(".part")]


# Outputs that are inputs


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "a.csv", "a.csv"],
        ["train", "a.csv", "b.csv", "--test", "b.csv"],
        ["train", "a.csv", "link.csv"],
        ["predict", "a.csv", "m", "m"],
        ["predict", "a.csv", "m", "./a.csv"],
        ["compress", "m", "m"],
        ["compress", "m", "new", "--onnx", "new"],
    ],
)
def test_an_output_is_never_an_input(arguments, csv, model, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.csv").write_bytes(csv.read_bytes())
    os.link(csv, tmp_path / "link.csv")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--force"])
    assert end.value.code == 2
    assert "are the same file" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


# Pipes


def fed(path, content):
    """A named pipe, and the thread that writes the content to it."""
    os.mkfifo(path)
    thread = threading.Thread(target=path.write_bytes, args=(content,), daemon=True)
    thread.start()
    return path


@POSIX
def test_inputs_that_are_pipes(csv, model, tmp_path, capsys):
    data, pipe = fed(tmp_path / "b.csv", csv.read_bytes()), fed(tmp_path / "model", model.read_bytes())
    assert main(["predict", str(data), str(pipe), str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text().split() == ["a"] * 10 + ["b"] * 10
    train, test = fed(tmp_path / "c.csv", csv.read_bytes()), fed(tmp_path / "63", csv.read_bytes())
    assert main(["train", str(train), str(tmp_path / "n"), "--test", str(test), "--format", "csv"]) == 0
    assert f"(20 samples, {test})" in capsys.readouterr().out
    broken = fed(tmp_path / "d.csv", b"1,2\n1\n")
    assert main(["train", str(broken), str(tmp_path / "o")]) == 1
    assert capsys.readouterr().err.startswith(f"widemargin: error: {broken}:2: 1 fields")
    os.mkfifo(tmp_path / "64")
    assert main(["predict", str(tmp_path / "64"), str(model)]) == 1
    assert "64 has no suffix: give --format csv" in capsys.readouterr().err


@POSIX
def test_outputs_that_are_pipes(csv, model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    copied: list[bytes] = []
    thread = threading.Thread(target=lambda: copied.append((tmp_path / "pipe").read_bytes()), daemon=True)
    thread.start()
    assert main(["predict", str(csv), str(model), str(tmp_path / "pipe")]) == 0
    thread.join(timeout=60)
    assert copied[0].split() == [b"a"] * 10 + [b"b"] * 10
    assert not parts(tmp_path)


@pytest.mark.slow
@POSIX
def test_standard_output_by_its_name(csv, tmp_path):
    done = shell(f"{PROGRAM} train a.csv /dev/stdout > trained", tmp_path)
    assert load(tmp_path / "trained").n_features_in_ == 1
    assert "support vectors" in done.stderr
    assert not parts(tmp_path)


# Closed, full and narrow streams


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize(
    ("command", "code", "error"),
    [
        ("train a.csv n >&-", 0, ""),
        ("train a.csv n <&- >&- 2>&-", 0, ""),
        ("predict a.csv m >&-", 1, "widemargin: error: standard output: is closed\n"),
        ("train a.csv - >&-", 1, "widemargin: error: standard output: is closed\n"),
        ("info m >&-", 1, "widemargin: error: standard output: is closed\n"),
        ("predict - m --format csv <&-", 1, "widemargin: error: standard input: is closed\n"),
        ("predict a.csv no 2>&-", 1, ""),
    ],
)
def test_closed_streams(command, code, error, csv, model, tmp_path):
    done = shell(f"{PROGRAM} {command}", tmp_path)
    assert (done.returncode, done.stderr) == (code, error)
    assert (tmp_path / "n").exists() == ("train a.csv n" in command)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("predict a.csv m > /dev/full", "standard output"),
        ("predict a.csv m /dev/full", "/dev/full"),
        ("info m > /dev/full", "standard output"),
    ],
)
def test_a_full_disk_is_named(command, name, csv, model, tmp_path):
    done = shell(f"{PROGRAM} {command}", tmp_path)
    errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert errors == [f"widemargin: error: {name}: No space left on device"], done.stderr
    assert done.returncode == 1


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize(
    "environment", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}]
)
def test_streams_that_take_ascii_alone(csv, tmp_path, environment):
    csv.write_text(csv.read_text().replace("a\n", "Köln\n"), encoding="utf-8")
    assert main(["train", str(csv), str(tmp_path / "m")]) == 0
    done = shell(f"{PROGRAM} info m", tmp_path, **environment)
    assert r"K\xf6ln" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@POSIX
def test_labels_beyond_ascii_are_utf_8_in_every_output(csv, tmp_path):
    csv.write_text(csv.read_text().replace("a\n", "Köln\n"), encoding="utf-8")
    assert main(["train", str(csv), str(tmp_path / "m"), "--scale", "standard"]) == 0
    done = shell(f"{PROGRAM} predict a.csv m", tmp_path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout.split()) == (0, ["Köln"] * 10 + ["b"] * 10), done.stderr


# Signals


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize(("name", "ignored"), [("SIGTERM", False), ("SIGHUP", True)])
def test_signals_leave_no_unfinished_file(name, ignored, csv, tmp_path):
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
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == (0 if ignored else 128 + getattr(signal, name)), done.stderr
    assert "Traceback" not in done.stderr
    assert not parts(tmp_path)
    assert (tmp_path / "n").exists() == ignored


def test_handlers_of_signals_are_the_callers_again(model):
    before = signal.getsignal(signal.SIGTERM)
    assert main(["info", str(model)]) == 0
    assert signal.getsignal(signal.SIGTERM) == before


@POSIX
def test_a_copy_of_standard_input_is_removed(csv, model, tmp_path):
    (tmp_path / "copies").mkdir()
    command = [sys.executable, "-m", "widemargin", "predict", "-", str(model), "--format", "csv"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "copies")}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        deadline = time.monotonic() + 60
        while not any((tmp_path / "copies").iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 143
    assert not any((tmp_path / "copies").iterdir())


# Sizes


def test_a_model_that_expands_to_far_more_than_its_size_is_refused(model, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(compressed, "_ALWAYS_EXPANDED", 10**6)
    with zipfile.ZipFile(model, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.npy", bytes(10**7))
    for command in (["info", str(model)], ["predict", str(model), str(model)]):
        assert main(command) == 1
        error = capsys.readouterr().err
        assert "m: expands to more than " in error
        assert "200 times its size" in error


@pytest.mark.slow
def test_data_that_expand_to_far_more_than_their_size_are_refused(csv, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(compressed, "_ALWAYS_EXPANDED", 10**6)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(csv.read_bytes() + b"1,a\n" * 10**6))
    assert main(["train", str(tmp_path / "b.csv.gz"), str(tmp_path / "n")]) == 1
    assert "b.csv.gz: expands to more than " in capsys.readouterr().err


def test_models_of_many_zeros_are_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(compressed, "_ALWAYS_EXPANDED", 10**5)
    monkeypatch.setattr(compressed, "_MOST_EXPANDED", 4)
    X = np.zeros((2000, 400), dtype=np.float32)
    X[:, 0] = np.arange(2000)
    np.savez(tmp_path / "a.npz", X=X, y=np.arange(2000) % 2)
    assert main(["train", str(tmp_path / "a.npz"), str(tmp_path / "m"), "--gamma", "1"]) == 0
    assert load(tmp_path / "m").n_features_in_ == 400
    assert (tmp_path / "m").stat().st_size > 2000 * 400 * 4
