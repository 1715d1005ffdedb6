"""What the mathematics stands on: special functions, linear algebra, threads, properties computed once."""
