"""The studies: what ``magicore ablate NAME`` and the files in ``scripts/`` call."""
