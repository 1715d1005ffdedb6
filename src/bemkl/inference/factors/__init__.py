"""The factors q(a) and q(G) of the pair, and what they need of the kernels (paper, section 4.1)."""
