"""The terminal: what `disttutor cards` asks and shows there."""
