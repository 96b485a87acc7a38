"""The table of families tells the truth: no model is missing from it, and every test it names exists."""

from __future__ import annotations

import ast
from pathlib import Path

from families_table import FILE, ROWS, is_test, table
from reward_models.registry import OUTCOME_MODELS, PROCESS_MODELS

HERE = Path(__file__).parent


def functions_of(file: str) -> set[str]:
    found = ast.parse((HERE / file).read_text(encoding="utf-8")).body
    return {node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def keys_of(file: str, table: str) -> set[str]:
    """The keys of a dictionary that a file assigns to a name."""
    for node in ast.parse((HERE / file).read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if any(isinstance(one, ast.Name) and one.id == table for one in targets) and isinstance(value, ast.Dict):
            return {key.value for key in value.keys if isinstance(key, ast.Constant)}
    raise AssertionError(f"{file} has no {table}")


def test_every_built_in_model_is_in_one_row() -> None:
    named = [name for row in ROWS for name in row.names]
    assert sorted(named) == sorted(OUTCOME_MODELS.keys() | PROCESS_MODELS.keys())


def test_every_test_that_is_named_exists_and_every_cell_says_something() -> None:
    for row in ROWS:
        for proofs in (row.format, row.parity, row.remote):
            assert proofs, row.family
            for proof in filter(is_test, proofs):
                file, _, test = proof.partition("::")
                assert test.partition("[")[0] in functions_of(file), proof


def test_every_case_of_the_parity_test_is_in_the_table_and_no_other() -> None:
    named = {proof.partition("[")[2].rstrip("]") for row in ROWS for proof in row.parity if "[" in proof}
    assert named == keys_of("family_cases.py", "CASES")


def test_the_file_is_the_table() -> None:
    assert FILE.read_text(encoding="utf-8") == table(), "python tests/families_table.py writes it anew"
