"""The whole engine in one thread on one virtual clock: faults drawn from a seed, invariants checked at every commit."""
