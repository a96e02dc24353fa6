//! A wrong clock must not open a guard, lift a rate limit or make a revocation ineffective.
