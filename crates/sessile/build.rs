//! Puts the tool profiles, one TOML file each, into the library.

#![expect(clippy::disallowed_methods, reason = "a build script reads its world and writes where it is told")]

use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").canonicalize()?;
    println!("cargo::rerun-if-changed={}", tools.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&tools)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    files.sort();
    let mut code = String::from("const BUILT_IN: &[(&str, &str)] = &[\n");
    for path in &files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        code.push_str(&format!("    (\"tools/{name}\", include_str!({:?})),\n", path.display().to_string()));
    }
    code.push_str("];\n");
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    std::fs::write(out.join("built_in_profiles.rs"), code)
}
