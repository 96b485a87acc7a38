"""Evaluation harnesses: a solver and a scorer for inspect_ai, a filter for lm-evaluation-harness.

Both harnesses also use the gateway as they use any OpenAI-compatible endpoint; nothing here is needed for that.
"""
