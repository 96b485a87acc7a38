"""The documentation is true: its Python runs, its commands parse, its messages exist, its links lead somewhere.

Four kinds of blocks are read in the guides:

* ``python`` runs, the blocks of a page one after the other in one namespace; ``text`` right after it is what it prints.
  After ``<!-- Not run: WHY -->`` it is only compiled.
* a block with a ``:caption:`` is a file, written before the page's Python and commands run.
  After ``<!-- A test runs this against a gateway. -->`` it runs against a real one, whose address is put in.
* ``console``: every ``magicore`` command must parse. After ``<!-- A test runs this. -->`` it runs as well.
* in ``troubleshooting.md`` a line of code before a definition is a message; an ellipsis stands for what differs.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import difficulty
import magicore
import reward_models
from gateways import gateway
from magicore.cli.app import app
from magicore.config import load_config
from reward_models import registry

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GUIDES = sorted((DOCS / "guides").glob("*.md"))
PAGES = sorted(path for path in [*DOCS.glob("*.md"), *DOCS.glob("*/*.md")] if path.name != "commands.md")
PACKAGES = (magicore, reward_models, difficulty)
RUNS, NOT_RUN = "<!-- A test runs this. -->", "<!-- Not run: "
WITH_GATEWAY, GATEWAY = "<!-- A test runs this against a gateway. -->", "http://127.0.0.1:8000"
_BLOCK = re.compile(
    r"(?:^(?P<mark><!-- .* -->)\n)?^```(?:(?P<plain>\w+)|\{code-block\} (?P<coded>\w+)\n:caption: (?P<file>\S+)\n)\n"
    r"(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"(?:[A-Z_]+=\S+ )*magicore ")
_ENDS_COMMAND = {"|", "&&", "||", ";", "&", ">"}


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of a page; ``follows`` says that nothing stands between it and the block before."""

    language: str
    body: str
    file: str | None
    mark: str
    follows: bool


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found, end = [], -1
    for match in _BLOCK.finditer(text):
        found.append(
            Block(
                language=match["plain"] or match["coded"],
                body=match["body"],
                file=match["file"],
                mark=match["mark"] or "",
                follows=end >= 0 and not text[end : match.start()].strip(),
            )
        )
        end = match.end()
    return found


def commands(body: str) -> Iterator[list[str]]:
    """The arguments of every ``magicore`` command of a console block."""
    for line in body.replace("\\\n", " ").splitlines():
        if found := _COMMAND.match(line):
            words = shlex.split(line[found.end() :], comments=True)
            ends = [at for at, word in enumerate(words) if word in _ENDS_COMMAND]
            yield words[: min(ends, default=len(words))]


@cache
def command_line() -> Any:
    """The application's commands, made once."""
    return typer.main.get_command(app)


def check_command(arguments: list[str]) -> None:
    """Parse a command as the command line does, without running it."""
    group = command_line()
    context = group.make_context("magicore", ["list"])
    name, command, rest = group.resolve_command(context, list(arguments))
    command.make_context(name, rest, parent=context)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder; import path and registries are as they were afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for found in (registry.process_models, registry.outcome_models):
        monkeypatch.setattr(found, "_registered", dict(found._registered))
    return tmp_path


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_guide_does_what_it_says(page: Path, folder: Path) -> None:
    """Files are written, then Python and the marked commands run in the order of the page."""
    found = blocks(page)
    for block in found:
        if block.file is not None:
            assert (folder / block.file).resolve().is_relative_to(folder)
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.body, encoding="utf-8")
    with ExitStack() as stack:
        url = GATEWAY
        if any(block.mark == WITH_GATEWAY for block in found):
            url = stack.enter_context(gateway(model="scripted", orm="likelihood", prm="arithmetic"))
        run_page(page, [replace(block, body=block.body.replace(GATEWAY, url)) for block in found])


def run_page(page: Path, found: list[Block]) -> None:
    """Run a page's Python and its marked commands, and compare what is printed."""
    names: dict[str, Any] = {"__name__": "guide"}
    printed = ""
    for block, after in pairwise([*found, None]):
        assert block is not None
        if block.language == "python":
            code = compile(block.body, f"{page.name}: {block.body.splitlines()[0]}", "exec")
            if block.mark.startswith(NOT_RUN) or block.file is not None:
                continue
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(code, names)
            printed = out.getvalue()
        elif block.language == "console" and block.mark == RUNS:
            printed = ""
            for arguments in commands(block.body):
                done = CliRunner().invoke(app, arguments, catch_exceptions=False)
                assert done.exit_code == 0, f"magicore {shlex.join(arguments)}: {done.output}"
                printed += done.stdout
        else:
            continue
        if after is not None and after.language == "text" and after.follows:
            assert printed.split() == after.body.split(), f"{page.name} says that this prints otherwise:\n{printed}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_commands_parse(page: Path) -> None:
    """No command of the documentation has an option that does not exist."""
    for block in blocks(page):
        if block.language == "console":
            for arguments in commands(block.body):
                try:
                    check_command(arguments)
                except Exception as error:
                    raise AssertionError(f"{page.name}: magicore {shlex.join(arguments)}: {error!r} {error}") from error


def test_a_wrong_command_is_found() -> None:
    """What the test above relies on: an unknown option, command or value does not parse."""
    [good, _] = commands("A_KEY=x magicore run --k 4 \\\n   --out runs/a | head  # what\nmagicore list\nls")
    assert good == ["run", "--k", "4", "--out", "runs/a"]
    check_command(good)
    for wrong in (["run", "--no-such"], ["no-such"], ["run", "--k", "four"], ["score"]):
        with pytest.raises(Exception, match=r"(?i)no such|missing|valid integer"):
            check_command(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_settings_and_tables_are_valid(page: Path, tmp_path: Path) -> None:
    """A TOML file of a guide is TOML, and a run's configuration has only settings that exist."""
    for block in blocks(page):
        if block.language == "toml":
            table = tomllib.loads(block.body)
            if block.file != "pyproject.toml":
                path = tmp_path / "run.toml"
                path.write_text(block.body, encoding="utf-8")
                assert load_config(path, {}) is not None
                assert table


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    """Links within the project name files that are there, and headings that they have."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name) if name else page
        if linked.name == "commands.md":
            continue
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in headings(linked), f"{page.name} links to {target}; {linked.name} has {headings(linked)}"


def headings(page: Path) -> list[str]:
    """The anchors of a page's headings."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in found]


def message_templates() -> str:
    """Every text of the sources, one a line, with an ellipsis for what is put in."""
    found: list[str] = []
    for package in PACKAGES:
        assert package.__file__ is not None
        for path in sorted(Path(package.__file__).parent.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
                elif isinstance(node, ast.JoinedStr):
                    found.append("".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values))
    return "\n".join(text.replace("\n", " ") for text in found)


def test_quoted_messages_exist() -> None:
    """Every message of the troubleshooting page is one that the sources can give."""
    page = (DOCS / "guides" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^(`+)( ?)(.+)\2\1\n: ", page, re.MULTILINE)
    templates = message_templates()
    assert len(quoted) > 30
    assert len(quoted) == len(re.findall(r"^: ", page, re.MULTILINE))
    assert [message for _, _, message in quoted if message not in templates] == []


def test_the_reference_covers_all_public_names() -> None:
    """One page a package, made from all that it exports; each exported name has a docstring."""
    for package in PACKAGES:
        page = (DOCS / "reference" / f"{package.__name__}.md").read_text(encoding="utf-8")
        assert f".. automodule:: {package.__name__}\n" in page
        exported = {name: getattr(package, name) for name in package.__all__}
        made = {name: value for name, value in exported.items() if inspect.isclass(value) or inspect.isfunction(value)}
        assert len(made) > 10
        assert [name for name, value in made.items() if not value.__doc__] == []


def test_every_page_is_in_the_contents() -> None:
    """No page is written and then not found."""
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in GUIDES:
        assert f"guides/{page.stem}" in index


@pytest.mark.integration
def test_sphinx_builds_without_warnings(tmp_path: Path) -> None:
    """As ``make docs`` does."""
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for package in PACKAGES:
        written = (tmp_path / "reference" / f"{package.__name__}.html").read_text(encoding="utf-8")
        missing = [name for name in package.__all__ if f'id="{package.__name__}.{name}"' not in written]
        assert missing in ([], ["__version__"])
