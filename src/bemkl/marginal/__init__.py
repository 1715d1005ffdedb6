"""The marginal posterior: sample weights integrated out, kernel weights by their evidence."""
