"""Language models: one protocol, one module a provider, wrappers for what all of them need."""
