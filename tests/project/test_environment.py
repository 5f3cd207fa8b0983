"""The project's files agree with each other: what is needed, what is pinned, and what conda installs."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import disttutor

ROOT = Path(__file__).parents[2]
CONDA_NAMES = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
BROUGHT_BY_PIP = {"fsrs", "genanki", "latex2mathml"}       # not in conda-forge in these versions
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
# What only PyTorch's CUDA builds bring along: PyTorch itself pins these.
OF_CUDA_BUILDS = ("nvidia-", "cuda-", "triton")


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def requirements(project: dict) -> list[Requirement]:
    extras = project.get("optional-dependencies", {})
    return [Requirement(text) for text in [*project["dependencies"], *extras["test"]]]


def test_the_package_says_the_version_of_the_project(project):
    assert disttutor.__version__ == project["version"]


def test_what_is_pinned_is_what_the_project_accepts(project, pins):
    refused = [f"{r} but pinned {pins[r.name]}" for r in requirements(project) if pins[r.name] not in r.specifier]
    assert refused == []
    assert pins["torch"] == "2.13.0"


def test_everything_that_is_installed_is_pinned(project, pins):
    """Follow what the requirements require: each of them is pinned, and what runs now is the pinned version."""
    todo, seen, wrong = requirements(project), set(), []
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        for extra in ["", *requirement.extras]:
            if (name, extra) in seen or name.startswith(OF_CUDA_BUILDS):
                continue
            seen.add((name, extra))
            try:
                distribution = metadata.distribution(name)
            except metadata.PackageNotFoundError:
                continue  # a package of another operating system
            if Version(distribution.version).public != pins.get(name):
                wrong.append(f"{name}: installed {distribution.version}, pinned {pins.get(name)}")
            below = [Requirement(text) for text in distribution.requires or []]
            todo += [r for r in below if r.marker is None or r.marker.evaluate({**LINUX, "extra": extra})]
    assert wrong == []
    assert {canonicalize_name(r.name) for r in requirements(project)} <= {name for name, _ in seen}
    assert len(seen) > 100  # it did walk down: jupyterlab alone needs some eighty


def test_conda_installs_the_same_packages_at_the_same_versions(project, pins):
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    specs = [spec for spec in environment["dependencies"] if isinstance(spec, str) and spec != "pip"]
    conda = {CONDA_NAMES.get(name, name): version for name, version in (spec.split("=") for spec in specs)}
    python = conda.pop("python")
    assert environment["channels"] == ["conda-forge"]
    assert environment["dependencies"][-1] == {"pip": ["--editable ."]}  # last, so that pip finds conda's packages
    assert project["requires-python"] == f">={python}"
    assert set(conda) | BROUGHT_BY_PIP == {Requirement(text).name for text in project["dependencies"]}
    assert conda == {name: re.match(r"\d+\.\d+", pins[name])[0] for name in conda}
