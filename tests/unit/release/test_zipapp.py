"""`kubectl-gcu` as one file, of small wheels. tests/cluster/test_release.py runs the real one."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.release.zipapp import PROGRAM, write_krew, write_zipapp

EPOCH = 1_700_000_000
_RUNS = "from beside import NAME\n\ndef main():\n    import sys\n    print(NAME, *sys.argv[1:])\n"


def wheel(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    ours = {"kubectl_gcu/__init__.py": "", "kubectl_gcu/main.py": _RUNS}
    beside = {"beside-1.data/purelib/beside.py": "NAME = 'one'", "beside-1.data/scripts/x": "#!"}
    return [
        wheel(tmp_path / "gcu-1-py3-none-any.whl", **ours),
        wheel(tmp_path / "beside-1-py3-none-any.whl", **beside),
        wheel(tmp_path / "pip-1-py3-none-any.whl", **{"pip/__init__.py": ""}),
    ]


def run(program: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """With nothing of this environment."""
    command = [sys.executable, "-I", "-S", str(program), *arguments]
    return subprocess.run(
        command, env={"HOME": str(home)}, capture_output=True, text=True, check=False
    )


def test_it_runs_and_unpacks_once(wheels: list[Path], tmp_path: Path) -> None:
    program, home = tmp_path / PROGRAM, tmp_path / "home"
    write_zipapp(wheels, program, EPOCH)
    found = run(program, home, "inspect", "-o", "json")
    assert (found.stdout, found.stderr) == ("one inspect -o json\n", "")
    [unpacked] = (home / ".cache" / PROGRAM).iterdir()
    assert sorted(each.name for each in unpacked.iterdir() if each.name != "__pycache__") == [
        "__main__.py",
        "beside.py",
        "kubectl_gcu",
    ]
    (unpacked / "beside.py").write_text("NAME = 'kept'")
    assert run(program, home).stdout == "kept\n"


def test_the_same_wheels_give_the_same_bytes_and_others_another_folder(
    wheels: list[Path], tmp_path: Path
) -> None:
    for name, its in (("one", wheels), ("other", wheels[::-1])):
        write_zipapp(its, tmp_path / name, EPOCH)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    write_zipapp(wheels, tmp_path / "old", EPOCH)
    wheel(wheels[1], **{"beside.py": "NAME = 'two'"})
    write_zipapp(wheels, tmp_path / "new", EPOCH)
    assert run(tmp_path / "old", tmp_path / "home").stdout == "one\n"
    assert run(tmp_path / "new", tmp_path / "home").stdout == "two\n"


def test_another_python_says_which_one_it_needs(wheels: list[Path], tmp_path: Path) -> None:
    program = tmp_path / PROGRAM
    write_zipapp(wheels, program, EPOCH)
    with zipfile.ZipFile(program) as archive:
        main = archive.read("__main__.py").decode()
    needed = f'PYTHON = "{sys.version_info.major}.{sys.version_info.minor}"'
    assert needed in main
    (tmp_path / "__main__.py").write_text(main.replace(needed, 'PYTHON = "3.1"'))
    found = run(tmp_path / "__main__.py", tmp_path)
    assert found.returncode == 1
    assert found.stderr.startswith("kubectl-gcu is built for Python 3.1; name it: python3.1 ")


def test_krew_gets_the_archive_that_its_manifest_names(wheels: list[Path], tmp_path: Path) -> None:
    program = tmp_path / PROGRAM
    write_zipapp(wheels, program, EPOCH)
    write_krew(program, tmp_path, "0.1.0", "https://example.com/v1", EPOCH)
    plugin = yaml.safe_load((tmp_path / "gcu.krew.yaml").read_text())
    assert (plugin["kind"], plugin["metadata"]["name"]) == ("Plugin", "gcu")
    [platform] = plugin["spec"]["platforms"]
    folder, _, name = platform["uri"].rpartition("/")
    assert folder == "https://example.com/v1"
    archive = tmp_path / name
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    with tarfile.open(archive) as opened:
        assert (
            opened.getnames()
            == sorted(each["from"] for each in platform["files"])
            == ["LICENSE", "kubectl-gcu"]
        )
        assert opened.getmember(platform["bin"]).mode == 0o755
        opened.extract(platform["bin"], tmp_path / "krew", filter="data")
    assert run(tmp_path / "krew" / platform["bin"], tmp_path / "home").stdout == "one\n"
