//! What is depended on stays little: every package costs build time, review and trust.

use std::collections::BTreeMap;

use crate::repository;

/// How many packages `Cargo.lock` may name, those for other systems included. Raise it knowingly.
const MOST: usize = 317;

/// Packages that may be there twice, and why.
const TWICE: &[&str] = &[
    "base64",            // the driver of PostgreSQL still has the older one
    "bitflags",          // 1 is for other systems
    "fallible-iterator", // the same driver, and rusqlite
    "getrandom",         // ring still has the older one
    "signal-hook",       // crossterm still has the older one
    "syn",               // 2 is for other systems
    "wasi",              // for another system
    "windows-sys",       // for another system
];

fn packages() -> BTreeMap<String, usize> {
    let lock = repository::read("Cargo.lock");
    let mut packages = BTreeMap::new();
    for name in lock.lines().filter_map(|line| line.strip_prefix("name = ")) {
        *packages.entry(name.trim_matches('"').to_owned()).or_default() += 1;
    }
    packages
}

#[test]
fn the_number_of_packages_is_capped() {
    let count: usize = packages().values().sum();
    assert!(count > 50, "the lock file was not understood");
    assert!(count <= MOST, "{count} packages, and {MOST} are allowed: is the new one worth it?");
}

#[test]
fn no_package_is_built_in_two_versions() {
    let packages = packages();
    let twice: Vec<&String> =
        packages.iter().filter(|(_, count)| **count > 1).map(|(name, _)| name).collect();
    let unexpected: Vec<_> = twice.iter().filter(|name| !TWICE.contains(&name.as_str())).collect();
    assert!(unexpected.is_empty(), "in two versions: {unexpected:?}; see `cargo tree -d`");
}
