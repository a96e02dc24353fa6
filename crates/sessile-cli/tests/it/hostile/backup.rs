//! Backup and restore must not weaken a guard, bring back revoked trust, or lose what they replace.
