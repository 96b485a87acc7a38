"""The families of reward models: one short module each, pure functions from text to token ids and read positions."""
