"""Reward models on other machines: clients of vLLM, SGLang and of this package's own scoring server."""
