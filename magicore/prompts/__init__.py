"""Prompts as data: one TOML file a prompt set, loaded and checked by :func:`load_prompts`."""

from magicore.prompts.loader import PromptSet, load_prompts, prompt_set_names

__all__ = ["PromptSet", "load_prompts", "prompt_set_names"]
