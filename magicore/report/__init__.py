"""What a run looks like: tables for the terminal, plots and the report."""
