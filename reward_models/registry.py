"""Reward models by name.

A name's provider (see :mod:`reward_models.names`) is looked up among

1. the built-in table below and what was registered by decorator in this process,
2. entry points of installed packages: ``magicore.outcome_reward_models`` and ``magicore.process_reward_models``, or
   ``magicore.reward_models``, which serves both kinds,
3. importable modules: ``my_package.module:MyPRM`` names a factory outright.

A name with a plain ``@http(s)://`` URL is a model that ``magicore serve-reward-model`` serves, whatever its provider.

Nothing is imported before it is asked for, so listing needs no torch. A factory is any callable, mostly a function or a
class. It gets the caller's options as keywords, and the parsed :class:`~reward_models.names.ModelName` as its first
argument if that is called ``name`` or has no default::

    @register_process("length")
    class Length:
        "Likes short steps."

        name = "length"

        def score(self, solutions): ...
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, NamedTuple, TypeVar, cast

from reward_models.base import OutcomeRewardModel, ProcessRewardModel, RewardModel
from reward_models.errors import MissingExtraError, RewardModelError, UnknownRewardModelError
from reward_models.names import ModelName, parse_model_name


class Builtin(NamedTuple):
    """One line of the built-in table: where the factory is, and what to say of it in a list."""

    target: str
    summary: str


# One line a name, in alphabetical order.
OUTCOME_MODELS: dict[str, Builtin] = {
    "constant": Builtin("reward_models.scripted:constant_orm", "the same score for every solution, constant:0.5"),
    "cross-encoder": Builtin("reward_models.remote.pairs:load", "question and solution as a pair, by vLLM's /score"),
    "deepconf": Builtin("reward_models.confidence:deepconf", "group confidence from top log-probabilities"),
    "embedded": Builtin("reward_models.families.embedded:load_orm", "SmolLM2-135M, trained on generated tasks"),
    "internlm2-1.8b-reward": Builtin("reward_models.families.internlm2_reward:load_small", "InternLM2-1.8B-reward"),
    "internlm2-20b-reward": Builtin("reward_models.families.internlm2_reward:load_20b", "InternLM2-20B-reward"),
    "internlm2-7b-reward": Builtin(
        "reward_models.families.internlm2_reward:load", "InternLM2-7B-reward, MAgICoRe's outcome model"
    ),
    "internlm2-reward": Builtin(
        "reward_models.families.internlm2_reward:load", "any InternLM2 reward model, also as converted"
    ),
    "judge": Builtin("reward_models.judges:judge_orm", "a language model's score of the whole solution, judge:MODEL"),
    "likelihood": Builtin("reward_models.likelihood:likelihood", "the solver's own mean token probability"),
    "qwen2.5-math-rm": Builtin("reward_models.families.qwen_math_rm:load", "any model of Qwen2.5-Math-RM's kind"),
    "qwen2.5-math-rm-72b": Builtin("reward_models.families.qwen_math_rm:load", "Qwen2.5-Math-RM-72B"),
    "random": Builtin("reward_models.scripted:random_orm", "a random score, fixed by the text and a seed, random:7"),
    "reasonflux-prm-1.5b": Builtin(
        "reward_models.families.reasonflux:load_small", "ReasonFlux-PRM-1.5B, one score a solution"
    ),
    "rlhflow-orm": Builtin("reward_models.families.rlhflow:load_orm", "any RLHFlow Llama 3.1 ORM"),
    "rlhflow-orm-deepseek": Builtin(
        "reward_models.families.rlhflow:load_orm_deepseek", "RLHFlow 8B ORM, Deepseek data"
    ),
    "rlhflow-orm-mistral": Builtin("reward_models.families.rlhflow:load_orm", "RLHFlow 8B ORM, Mistral data"),
    "scripted": Builtin("reward_models.scripted:scripted_orm", "given scores from a JSON file, scripted:FILE"),
    "self-certainty": Builtin("reward_models.confidence:self_certainty", "divergence of the tokens from uniform"),
    "sequence-classification": Builtin(
        "reward_models.families.sequence_classifier:load", "any one-label classifier, chat template"
    ),
    "skywork-reward-v2": Builtin(
        "reward_models.families.sequence_classifier:load_skywork", "Skywork-Reward-V2 8B, or its sizes"
    ),
    "thinkprm": Builtin("reward_models.families.thinkprm:load_orm", "ThinkPRM: long thought and P(yes) of the whole"),
}
PROCESS_MODELS: dict[str, Builtin] = {
    "arithmetic": Builtin("reward_models.arithmetic:arithmetic", "checks the equations written in each step, by rule"),
    "constant": Builtin("reward_models.scripted:constant_prm", "the same score for every step, constant:0.5"),
    "embedded": Builtin("reward_models.families.embedded:load_prm", "SmolLM2-135M, trained on generated tasks"),
    "erprm": Builtin("reward_models.families.erprm:load", "erPRM, entropy-regularised, on Llama 3.1"),
    "eurus-prm": Builtin(
        "reward_models.families.eurus_prm:load", "EurusPRM: implicit rewards against a reference model"
    ),
    "eurus-prm-stage1": Builtin("reward_models.families.eurus_prm:load_stage1", "EurusPRM-Stage1"),
    "eurus-prm-stage2": Builtin("reward_models.families.eurus_prm:load", "EurusPRM-Stage2"),
    "genprm": Builtin("reward_models.families.genprm:load", "GenPRM: a written critique and P(Yes) of each step"),
    "judge": Builtin("reward_models.judges:judge_prm", "a language model's score of each step, judge:MODEL"),
    "llama-prm800k": Builtin("reward_models.families.versa_prm:load_llama_prm800k", "Llama-PRM800K, VersaPRM's format"),
    "math-psa": Builtin("reward_models.families.math_psa:load", "Math-PSA of openr, on Qwen2.5"),
    "math-shepherd": Builtin("reward_models.families.math_shepherd:load", "Math-Shepherd 7B, MAgICoRe's process model"),
    "qwen-prm800k": Builtin("reward_models.families.versa_prm:load_qwen_prm800k", "Qwen-PRM800K, VersaPRM's format"),
    "qwen2.5-math-7b-prm800k": Builtin("reward_models.families.qwen_math_prm:load_prm800k", "Qwen2.5-Math-7B-PRM800K"),
    "qwen2.5-math-prm": Builtin("reward_models.families.qwen_math_prm:load", "any model of Qwen2.5-Math-PRM's kind"),
    "qwen2.5-math-prm-72b": Builtin("reward_models.families.qwen_math_prm:load_72b", "Qwen2.5-Math-PRM-72B"),
    "qwen2.5-math-prm-7b": Builtin("reward_models.families.qwen_math_prm:load", "Qwen2.5-Math-PRM-7B"),
    "random": Builtin("reward_models.scripted:random_prm", "random step scores, fixed by text and seed, random:7"),
    "reasonflux-prm-7b": Builtin("reward_models.families.reasonflux:load_7b", "ReasonFlux-PRM-7B"),
    "rlhflow-prm": Builtin("reward_models.families.rlhflow:load_prm", "any RLHFlow Llama 3.1 PRM"),
    "rlhflow-prm-deepseek": Builtin(
        "reward_models.families.rlhflow:load_prm_deepseek", "RLHFlow 8B PRM, Deepseek data"
    ),
    "rlhflow-prm-mistral": Builtin("reward_models.families.rlhflow:load_prm", "RLHFlow 8B PRM, Mistral data"),
    "scripted": Builtin("reward_models.scripted:scripted_prm", "given step scores from a JSON file, scripted:FILE"),
    "skywork-o1-prm": Builtin("reward_models.families.skywork_o1:load", "any model of Skywork-o1-Open-PRM's kind"),
    "skywork-o1-prm-1.5b": Builtin("reward_models.families.skywork_o1:load_small", "Skywork-o1-Open-PRM 1.5B"),
    "skywork-o1-prm-7b": Builtin("reward_models.families.skywork_o1:load", "Skywork-o1-Open-PRM 7B"),
    "thinkprm": Builtin("reward_models.families.thinkprm:load_prm", "ThinkPRM: long thought, P(yes) up to each step"),
    "trl-prm": Builtin("reward_models.families.trl_prm:load", "any token classifier trained by TRL's PRMTrainer"),
    "versa-prm": Builtin("reward_models.families.versa_prm:load", "VersaPRM, 14 subjects"),
}

# Packages that come with an extra of the distribution.
_EXTRAS = {
    **dict.fromkeys(
        ("accelerate", "gguf", "safetensors", "sentencepiece", "tokenizers", "torch", "transformers"),
        "local",
    ),
    "bitsandbytes": "quant",
    **dict.fromkeys(("fastapi", "uvicorn"), "serve"),
}

# Where what follows these names is PROVIDER:MODEL, it is a language model's name, and URLs are that model's own.
_ASKING = frozenset({"genprm", "judge", "thinkprm"})

ModelT = TypeVar("ModelT", bound=RewardModel)
FactoryT = TypeVar("FactoryT", bound=Callable[..., Any])
Factory = Callable[..., Any]


class Registry(Generic[ModelT]):
    """Names and the factories behind them, for one kind of reward model."""

    def __init__(
        self, kind: str, table: Mapping[str, Builtin], *, groups: Sequence[str] = (), served: str | None = None
    ) -> None:
        """Make a registry.

        Args:
            kind: The adjective used in messages: outcome or process.
            table: The built-in names.
            groups: Entry-point groups to read.
            served: The factory of models that are served over plain HTTP, as ``module:attribute``.
        """
        self.kind = kind
        self.groups = tuple(groups)
        self._table = table
        self._served = served
        self._registered: dict[str, Factory] = {}

    def register(self, name: str) -> Callable[[FactoryT], FactoryT]:
        """Decorator that puts a factory under ``name``.

        Raises:
            ValueError: The name is taken or is no provider word. (Running a notebook cell again may redefine its own.)
        """
        if str(ModelName(provider=name)) in self._table:
            raise ValueError(f"the {self.kind} reward model {name!r} is built in; choose another name")

        def put(factory: FactoryT) -> FactoryT:
            old = self._registered.get(name)
            if old is not None and not _same_notebook_object(old, factory):
                raise ValueError(f"the {self.kind} reward model {name!r} is registered already, by {_where(old)}")
            self._registered[name] = factory
            return factory

        return put

    def names(self) -> dict[str, str]:
        """Every known name with a one-line summary, sorted; imports no factory."""
        found = {point.name: _origin(point) for group in reversed(self.groups) for point in entry_points(group=group)}
        found |= {name: _summary(factory) for name, factory in self._registered.items()}
        found |= {name: builtin.summary for name, builtin in self._table.items()}
        return dict(sorted(found.items()))

    def factory(self, name: str | ModelName) -> Factory:
        """The factory behind a name, imported now.

        Raises:
            UnknownRewardModelError: No such name; near ones are suggested.
            MissingExtraError: It needs a package that is not installed.
        """
        return self._find(self._parse(name))

    def load(self, name: str | ModelName, **options: object) -> ModelT:
        """Build the model.

        Raises:
            UnknownRewardModelError: No such name.
            MissingExtraError: It needs a package that is not installed.
            RewardModelError: It knows no such option, could not be built, or is no reward model.
        """
        parsed = self._parse(name)
        factory = self._find(parsed)
        known = _keywords(factory)
        if known is not None and (strange := sorted(set(options) - known)):
            knows = f"it knows {', '.join(sorted(known))}" if known else "it has none"
            raise RewardModelError(f"there is no option {', '.join(strange)}; {knows}", model=str(parsed))
        takes_name = _takes_name(factory)
        if not takes_name and parsed != ModelName(provider=parsed.provider) and not self._is_path(parsed):
            raise RewardModelError(f"nothing may follow {parsed.provider!r} in this name", model=str(parsed))
        positional = (parsed,) if takes_name else ()
        try:
            model = factory(*positional, **options)
        except ModuleNotFoundError as error:
            raise _missing(error, parsed.provider) from error
        if not callable(getattr(model, "score", None)) or not isinstance(getattr(model, "name", None), str):
            raise RewardModelError("what its factory built has no `score` method or no `name`", model=str(parsed))
        return cast("ModelT", model)

    def options(self, name: str | ModelName) -> frozenset[str] | None:
        """The option names its factory knows (imported now), or ``None`` if it takes any."""
        return _keywords(self.factory(name))

    def _parse(self, name: str | ModelName) -> ModelName:
        if isinstance(name, ModelName):
            return name
        try:
            return parse_model_name(name)
        except ValueError as error:
            raise UnknownRewardModelError(str(error)) from None

    def _find(self, name: ModelName) -> Factory:
        if self._served and name.engine == "http" and not (name.provider in _ASKING and ":" in name.name):
            return _import(self._served, str(name))
        if builtin := self._table.get(name.provider):
            return _import(builtin.target, name.provider)
        if registered := self._registered.get(name.provider):
            return registered
        if point := self._entry_point(name.provider):
            return _import(point.value, name.provider)
        if _names_attribute(name):
            return _import(f"{name.provider}:{name.name}", str(name))
        raise UnknownRewardModelError(self._unknown(name.provider))

    def _is_path(self, name: ModelName) -> bool:
        """Whether the name was resolved as ``module:attribute``."""
        return name.provider not in self.names() and _names_attribute(name)

    def _entry_point(self, name: str) -> EntryPoint | None:
        for group in self.groups:
            points = {point.value: point for point in entry_points(group=group, name=name)}
            if len(points) > 1:
                given = "; ".join(sorted(_origin(point) for point in points.values()))
                raise RewardModelError(f"several packages offer this {self.kind} reward model: {given}", model=name)
            for point in points.values():
                return point
        return None

    def _unknown(self, provider: str) -> str:
        known = list(self.names())
        near = difflib.get_close_matches(provider.lower(), known, n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
        for other in (outcome_models, process_models):
            if other is not self and provider in other.names():
                hint = f"that is {'an' if other is outcome_models else 'a'} {other.kind} reward model; {hint}"
        return f"no {self.kind} reward model is called {provider!r}: {hint}"


def _import(target: str, name: str) -> Factory:
    module, _, attribute = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _missing(error, name) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise RewardModelError(f"module {module} has no {attribute!r}", model=name)
        found = getattr(found, part)
    if not callable(found):
        raise RewardModelError(f"{target} cannot be called, so it is no factory", model=name)
    return cast("Factory", found)


def _missing(error: ModuleNotFoundError, name: str) -> RewardModelError:
    package = (error.name or "").partition(".")[0]
    if extra := _EXTRAS.get(package):
        return MissingExtraError(f"needs {package}: pip install 'magicore[{extra}]'", model=name)
    return MissingExtraError(f"needs the module {error.name!r}, which is not installed here", model=name)


def _names_attribute(name: ModelName) -> bool:
    """Whether the name reads ``module:attribute`` and there is such a module."""
    if not all(part.isidentifier() for part in (*name.provider.split("."), *name.name.split("."))):
        return False
    try:
        return importlib.util.find_spec(name.provider) is not None
    except (ModuleNotFoundError, ValueError):  # a parent is no package; a module without a spec, such as __main__
        return False


def _parameters(factory: Factory) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(factory).parameters.values())
    except ValueError:  # some C callables have no signature: they take what they take
        return [inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)]


def _takes_name(factory: Factory) -> bool:
    first = next(iter(_parameters(factory)), None)
    if first is None or first.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
        return False
    return first.name == "name" or first.default is inspect.Parameter.empty


def _keywords(factory: Factory) -> frozenset[str] | None:
    parameters = _parameters(factory)
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    first = 1 if _takes_name(factory) else 0
    return frozenset(parameter.name for parameter in parameters[first:] if parameter.kind in named)


def _summary(factory: Factory) -> str:
    return (inspect.getdoc(factory) or "").partition("\n")[0]


def _same_notebook_object(old: Factory, new: Factory) -> bool:
    return old.__module__ == new.__module__ == "__main__" and _where(old) == _where(new)


def _where(factory: Factory) -> str:
    return f"{factory.__module__}:{getattr(factory, '__qualname__', type(factory).__qualname__)}"


def _origin(point: EntryPoint) -> str:
    return f"{point.value}, from {point.dist.name} {point.dist.version}" if point.dist else point.value


outcome_models: Registry[OutcomeRewardModel] = Registry(
    "outcome",
    OUTCOME_MODELS,
    groups=("magicore.outcome_reward_models", "magicore.reward_models"),
    served="reward_models.remote.http:orm",
)
process_models: Registry[ProcessRewardModel] = Registry(
    "process",
    PROCESS_MODELS,
    groups=("magicore.process_reward_models", "magicore.reward_models"),
    served="reward_models.remote.http:prm",
)


def register_outcome(name: str) -> Callable[[FactoryT], FactoryT]:
    """Register an outcome reward model's factory or class under ``name``."""
    return outcome_models.register(name)


def register_process(name: str) -> Callable[[FactoryT], FactoryT]:
    """Register a process reward model's factory or class under ``name``."""
    return process_models.register(name)


def load_outcome_model(name: str | ModelName, **options: object) -> OutcomeRewardModel:
    """Build an outcome reward model by name; see :meth:`Registry.load`."""
    return outcome_models.load(name, **options)


def load_process_model(name: str | ModelName, **options: object) -> ProcessRewardModel:
    """Build a process reward model by name; see :meth:`Registry.load`."""
    return process_models.load(name, **options)
