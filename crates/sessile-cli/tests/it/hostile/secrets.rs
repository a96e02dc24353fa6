//! Secrets stay in the vault: not in exports, settings, core dumps or the environment of unrelated commands.
