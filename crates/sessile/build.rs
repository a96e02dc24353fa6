//! Puts the tool profiles into the library: parsed, because TOML takes longer to parse than a command may take to start.

#![expect(clippy::disallowed_methods, reason = "a build script reads its environment and writes to OUT_DIR")]

use std::fmt::Write;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use toml_edit::{Item, TableLike, Value};

fn main() -> Result<()> {
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
    let mut code = String::from("static BUILT_IN: &[BuiltIn] = &[\n");
    for path in &files {
        let text = std::fs::read_to_string(path)?;
        let wrong = |error: String| Error::other(format!("{}: {error}", path.display()));
        let parsed = toml_edit::Document::parse(text.as_str()).map_err(|error| wrong(error.to_string()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let table = table(parsed.as_table()).map_err(wrong)?;
        // Writing to a string cannot fail.
        let _ = writeln!(
            code,
            "    BuiltIn {{ path: \"tools/{stem}.toml\", name: {stem:?}, content: {table} }},"
        );
    }
    code.push_str("];\n");
    let texts: String =
        files.iter().map(|path| format!("    include_str!({:?}),\n", path.display().to_string())).collect();
    let _ = write!(code, "#[cfg(test)]\nstatic TEXTS: &[&str] = &[\n{texts}];\n");
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    std::fs::write(out.join("built_in_profiles.rs"), code)
}

/// A table as an expression of `StaticData`.
fn table(table: &dyn TableLike) -> std::result::Result<String, String> {
    let mut members = String::new();
    for (key, item) in table.iter() {
        let _ = write!(members, "({key:?}, {}), ", data(item)?);
    }
    Ok(format!("StaticData::Table(&[{members}])"))
}

fn data(item: &Item) -> std::result::Result<String, String> {
    let list = |items: Vec<std::result::Result<String, String>>| -> std::result::Result<String, String> {
        let items = items.into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(format!("StaticData::Array(&[{}])", items.join(", ")))
    };
    match item {
        Item::Table(found) => table(found),
        Item::Value(Value::InlineTable(found)) => table(found),
        Item::Value(Value::Boolean(value)) => Ok(format!("StaticData::Bool({})", value.value())),
        Item::Value(Value::Integer(value)) => Ok(format!("StaticData::Integer({})", value.value())),
        Item::Value(Value::String(value)) => Ok(format!("StaticData::Text({:?})", value.value())),
        Item::Value(Value::Array(values)) => {
            list(values.iter().map(|value| data(&Item::Value(value.clone()))).collect())
        }
        Item::ArrayOfTables(tables) => list(tables.iter().map(|found| table(found)).collect()),
        other => Err(format!("profiles have no {} values", other.type_name())),
    }
}
