"""The scoring engine for Hugging Face models; needs the extra ``magicore[local]``."""
