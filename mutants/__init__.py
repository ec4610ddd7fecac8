"""Proof that the tests would notice: each mutant undoes one rule, and a named test must fail because of it."""
