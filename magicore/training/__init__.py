"""Step labels without people, training of reward models and policies, and judging what was trained."""
