"""Tools for testing programs that call language models; users need them as much as this project does."""
