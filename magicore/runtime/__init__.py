"""The runtime: what a method is given (models by role, scorers, store, accounting), and how a run is scheduled."""
