"""Both means of the pair (a, G) solved together: a preconditioned Newton step (derivation, section 5)."""
