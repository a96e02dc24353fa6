//! Build information of `sessile --version --verbose`.

use std::ffi::OsString;

use serde_json::json;

use crate::error::Outcome;
use crate::output::Output;

/// Commit that the program was built from. `scripts/package` and the Nix flake set the variable.
const COMMIT: Option<&str> = option_env!("SESSILE_BUILD_COMMIT");

/// Whether the arguments ask for more than the version.
pub(crate) fn is_asked(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "--verbose" || arg == "-v")
}

/// Prints the version, the commit, the target and the features.
pub(crate) fn print(out: &Output) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    let commit = COMMIT.filter(|commit| !commit.is_empty());
    let is_static = cfg!(target_feature = "crt-static");
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let build = json!({
        "version": version,
        "commit": commit,
        "target": target(),
        "static": is_static,
        "profile": profile,
        "features": features(),
    });
    out.result(&build, || {
        let linked = if is_static { "static" } else { "dynamic" };
        let features = if features().is_empty() { "none".to_owned() } else { features().join(", ") };
        let commit = commit.unwrap_or("unknown");
        format!(
            "sessile {version}\ncommit    {commit}\ntarget    {} ({linked})\nprofile   {profile}\nfeatures  {features}\n",
            target()
        )
    })
}

fn target() -> String {
    use std::env::consts::{ARCH, OS};
    match OS {
        "linux" => format!("{ARCH}-unknown-linux-{}", if cfg!(target_env = "musl") { "musl" } else { "gnu" }),
        "macos" => format!("{ARCH}-apple-darwin"),
        _ => format!("{ARCH}-{OS}"),
    }
}

fn features() -> Vec<&'static str> {
    [("keychain", cfg!(feature = "keychain"))]
        .into_iter()
        .filter(|(_, is_on)| *is_on)
        .map(|(name, _)| name)
        .collect()
}
