"""The shape of the code, read from its source: which package imports which, and what importing costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("magicore", "reward_models", "difficulty")
# Slow to import, or absent from a core installation: none is imported until something needs it.
HEAVY = frozenset(
    {
        "accelerate",
        "datasets",
        "fastapi",
        "gguf",
        "huggingface_hub",
        "latex2sympy2_extended",
        "math_verify",
        "matplotlib",
        "openai",
        "pandas",
        "prometheus_client",
        "pyarrow",
        "ray",
        "scipy",
        "sympy",
        "tokenizers",
        "torch",
        "transformers",
        "uvicorn",
    }
)


@dataclass(frozen=True, kw_only=True)
class Import:
    """One imported name: the module asked for, where, and whether the module's own import carries it out."""

    target: str
    line: int
    eager: bool


def module_name(path: Path) -> str:
    """The dotted name under which the file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_type_checking(node: ast.AST) -> bool:
    """Whether this is an ``if TYPE_CHECKING:`` block, which nothing runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports_of(path: Path) -> Iterator[Import]:
    """Every import in the file, wherever it stands; relative ones resolved."""
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]

    def visit(node: ast.AST, eager: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(target=alias.name, line=node.lineno, eager=eager)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield Import(target=module, line=node.lineno, eager=eager)
            for alias in node.names:
                yield Import(target=f"{module}.{alias.name}", line=node.lineno, eager=eager)
        deferred = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_type_checking(node)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, eager and not deferred)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), True)


def sources(package: str) -> list[Path]:
    """The package's Python files."""
    return sorted((ROOT / package).rglob("*.py"))


MODULES = {module_name(path): path for package in PACKAGES for path in sources(package)}


def eager_closure(root: str) -> dict[str, str]:
    """All modules that importing ``root`` imports, ours followed further, each with a module that imports it."""
    reached = {root: "(the start)"}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in MODULES:
            continue
        targets = [found.target for found in imports_of(MODULES[name]) if found.eager]
        for target in [*targets, *(target.rpartition(".")[0] for target in targets)]:
            parents = [target[: match.start()] for match in re.finditer(r"\.", target)]
            for found in (*parents, target):
                if found and found not in reached:
                    reached[found] = name
                    waiting.append(found)
    return reached


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_source_and_is_marked_as_typed(package: str) -> None:
    assert (ROOT / package / "__init__.py").is_file()
    assert (ROOT / package / "py.typed").is_file()
    assert len(sources(package)) > 1


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        ("reward_models", {"magicore", "difficulty"}),
        ("difficulty", {"magicore", "reward_models"}),
        ("magicore", {"tests", "scripts"}),
    ],
)
def test_imports_point_in_one_direction(package: str, forbidden: set[str]) -> None:
    backwards = [
        f"{path.relative_to(ROOT)}:{found.line} imports {found.target}"
        for path in sources(package)
        for found in imports_of(path)
        if found.target.split(".")[0] in forbidden
    ]
    assert backwards == []


def test_folders_of_modules_are_packages() -> None:
    missing = sorted({str(path.parent.relative_to(ROOT)) for path in MODULES.values() if not has_init(path)})
    assert missing == []


def has_init(path: Path) -> bool:
    return (path.parent / "__init__.py").is_file()


@pytest.mark.parametrize("start", [*PACKAGES, "magicore.cli"])
def test_importing_the_packages_or_the_command_line_leads_to_nothing_heavy(start: str) -> None:
    reached = eager_closure(start)
    heavy = {name: by for name, by in reached.items() if name in HEAVY}
    assert heavy == {}, "imported when the module is, by: move the import to where it is used"


def test_importing_the_packages_loads_nothing_heavy() -> None:
    probe = (
        "import sys, magicore, reward_models, difficulty, magicore.cli\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    # Outside the checkout and isolated, so that what counts is the installed packages.
    done = subprocess.run([sys.executable, "-I", "-c", probe], cwd="/", capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & HEAVY == set()
    assert done.stderr == ""


def test_nothing_prints_but_the_command_line_through_rich() -> None:
    prints = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in [*MODULES.values(), *sources("scripts")]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "pprint")
    ]
    assert prints == []


def test_no_checker_is_silenced_and_no_model_text_is_run() -> None:
    comment = re.compile(r"#\s*(type:\s*ignore|mypy:|ruff:\s*noqa(?!:)|flake8:|noqa(?!:))")
    silenced = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in MODULES.values()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if comment.search(line)
    ]
    assert silenced == []
    run = [
        f"{path.relative_to(ROOT)}:{node.lineno} calls {node.func.id}"
        for path in MODULES.values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec")
    ]
    assert run == []


def test_the_changelog_starts_with_the_version_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert versions[0] == project["version"]


def test_every_import_is_of_a_declared_requirement() -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [*project["dependencies"], *(item for extra in project["optional-dependencies"].values() for item in extra)]
    declared = {canonicalize_name(Requirement(item).name) for item in named}
    known = packages_distributions()
    undeclared = {
        f"{name} imports {top}"
        for name, path in MODULES.items()
        for top in {found.target.split(".")[0] for found in imports_of(path)} - {""}
        if top not in sys.stdlib_module_names and top not in PACKAGES
        if declared.isdisjoint(map(canonicalize_name, known.get(top, [top])))
    }
    assert undeclared == set()


def test_every_constraint_admits_what_the_project_requires() -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = {canonicalize_name(pin.name): pin for line in lines if line[:1].isalnum() for pin in [Requirement(line)]}
    wanted = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    for requirement in map(Requirement, wanted):
        if requirement.name == "magicore":
            continue
        pin = next(iter(pins[canonicalize_name(requirement.name)].specifier)).version
        assert requirement.specifier.contains(pin), f"{requirement} excludes the pinned {pin}"
