"""Score solutions of reasoning problems: outcome and process reward models behind two small protocols."""
