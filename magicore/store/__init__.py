"""What a run keeps: the store (everything paid for) and the files that commands exchange."""
