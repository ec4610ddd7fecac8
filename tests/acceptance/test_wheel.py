"""Installed as a wheel, in an empty environment outside the checkout, everything is there."""

from __future__ import annotations

import os
import re
import shutil
import signal
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import msgspec
import pytest
from tests.acceptance.test_demo import EXPECTED
from tests.support.environment import ROOT, clean_environment, package_registry
from tests.support.shell import fetched, started

OLD_PIP = "23.2.1"
"""What Python 3.11 brings along; later ones read the name of an extra however it is spelled."""
UNREACHABLE = re.compile(r"Failed to establish|Connection (refused|aborted|broken)|No matching distribution|timed out")
PAGES = (
    "/",
    "/dead-letters",
    "/workflows/hacker_news",
    "/pipelines/first_issues/issues",
    "/docs",
    "/openapi.json",
    "/search?q=lamp",
    "/metrics",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built here and now, without the network."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that holds the wheel and, by reference, what it depends on."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = ["install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *install], check=True)
    # A folder named in a .pth file is searched, but .pth files inside it are not read: the checkout stays out.
    packages = next((folder / "lib").glob("python*/site-packages"))
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return folder / "bin"


@pytest.fixture(scope="module")
def installed_by_old_pip(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that a pip of 2023 filled from the package registry."""
    folder = tmp_path_factory.mktemp("old-pip")
    venv.create(folder, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--target", str(folder / "pip")]
    _from_registry([*pip, f"pip=={OLD_PIP}"], clean_environment(**package_registry()))
    # Compiling what is installed takes longer than installing it, and is not what is tested.
    command = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--no-compile"]
    environment = clean_environment(PYTHONPATH=str(folder / "pip"), **package_registry())
    said = _from_registry([*command, str(wheel)], environment)
    assert "Successfully installed" in said
    return folder / "bin"


def _from_registry(command: list[str], environment: dict[str, str]) -> str:
    """Install something; a laptop without a network skips, CI must have one."""
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    if ended.returncode and UNREACHABLE.search(ended.stderr) and not os.environ.get("CI"):
        pytest.skip("the package registry cannot be reached; in CI this fails")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def incomplete(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment where one of the page parser's modules cannot be imported."""
    folder = tmp_path_factory.mktemp("incomplete") / "env"
    shutil.copytree(installed.parent, folder, symlinks=True)
    packages = next((folder / "lib").glob("python*/site-packages"))
    (packages / "lxml_html_clean.py").write_text("raise ImportError('no cleaner is installed')\n")
    return folder / "bin"


def without_checkout(temporary: Path) -> dict[str, str]:
    environment = clean_environment(temporary)
    del environment["PYTHONPATH"]
    return environment


def test_everything_that_is_no_code_is_in_the_wheel(wheel: Path) -> None:
    source = ROOT / "src"
    ours = {str(path.relative_to(source)) for path in (source / "tidings").rglob("*") if path.is_file()}
    wanted = {name for name in ours if not name.endswith((".pyc", ".pyo"))}
    with zipfile.ZipFile(wheel) as packed:
        assert wanted <= set(packed.namelist())
        entries = packed.read(next(name for name in packed.namelist() if name.endswith("entry_points.txt"))).decode()
    assert "tidings = tidings.cli.main:main" in entries
    assert all(f"{name} = tidings.pipelines.{name}" in entries for name in EXPECTED)


def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    environment = without_checkout(tmp_path / "temporary")
    where = subprocess.run(
        [installed / "python", "-c", "import tidings; print(tidings.__file__)"],
        cwd=tmp_path, env=environment, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert where.startswith(str(installed.parent))

    once = (str(installed / "tidings"), "demo", "--once", "--json")
    with started(*once, folder=tmp_path, environment=environment) as demo:
        code, out, err = demo.ended()
    assert (code, err) == (0, "")
    assert msgspec.json.decode(out)["pipelines"] == EXPECTED


def test_the_dashboard_is_served_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    environment = without_checkout(tmp_path / "temporary")
    with started(str(installed / "tidings"), "demo", "--port", "0", folder=tmp_path, environment=environment) as demo:
        address = demo.printed(r"dashboard\s+(http://127\.0\.0\.1:\d+)")
        for page in PAGES:
            assert len(fetched(address + page)) > 500, page
        home = fetched(address).decode()
        linked = {part.split('"')[0] for part in home.split('="')[1:] if part.startswith("/static/")}
        assert len(linked) >= 3
        for name in linked:
            assert fetched(address + name), name
        demo.process.send_signal(signal.SIGTERM)
        assert demo.ended()[0] == 0


def test_a_configuration_is_written_and_checked_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    for arguments in (("init",), ("doctor", "--offline"), ("workflow", "first_issues")):
        command = [str(installed / "tidings"), *arguments]
        ended = subprocess.run(
            command, cwd=tmp_path, env=without_checkout(tmp_path / "temporary"), capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr


ARTICLE = "<html><body><article><p>%s</p></article></body></html>" % (
    "The quick brown fox jumps over the lazy dog. " * 9
)


def ran(programs: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(programs / "python"), "-m", "tidings", *arguments]
    environment = without_checkout(folder / "temporary")
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_an_old_pip_installs_everything_that_reading_a_page_takes(installed_by_old_pip: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(ARTICLE)
    ended = ran(installed_by_old_pip, tmp_path, "try", "extract", "page.html", "--json")
    assert ended.returncode == 0, ended.stderr
    assert "quick brown fox" in msgspec.json.decode(ended.stdout)["text"]


def test_where_pages_cannot_be_read_every_command_says_why_and_ends(incomplete: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(ARTICLE)
    for arguments in (("try", "extract", "page.html"), ("demo", "--once"), ("demo", "--port", "0")):
        ended = ran(incomplete, tmp_path, *arguments)
        assert ended.returncode in (1, 2), arguments
        assert "page parser cannot start" in ended.stderr
        assert "ImportError: lxml.html.clean" in ended.stderr
        assert "memory" not in ended.stderr
    doctor = ran(incomplete, tmp_path, "doctor", "--offline", "--json")
    assert doctor.returncode == 1
    checks = {check["what"]: check for check in msgspec.json.decode(doctor.stdout)["checks"]}
    assert checks["page parser"]["standing"] == "broken"
    assert "lxml_html_clean" in checks["page parser"]["message"]
