"""Problems from files, the Hub and generators."""

from magicore.datasets.generate import generate
from magicore.datasets.infer import infer_kind
from magicore.datasets.load import iter_problems, load_problems
from magicore.datasets.problems import kinds_shown, problem_row, read_problem

__all__ = ["generate", "infer_kind", "iter_problems", "kinds_shown", "load_problems", "problem_row", "read_problem"]
