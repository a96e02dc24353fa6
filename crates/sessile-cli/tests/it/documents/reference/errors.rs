//! Page of the error codes and exit statuses.

use std::fmt::Write;

use serde_json::Value;
use sessile_cli::commands::manifest::manifest;

use super::{MADE, cell, items, text};
use crate::documents::guides::assert_parses;
use crate::repository;

const INTRODUCTION: &str = r#"A failed call prints nothing on standard output. On standard error it prints `error:` and `hint:` lines, or,
with `--output json` or `jsonl`, one line of JSON:

```json
{"error":{"code":"CONTEXT_NOT_FOUND","message":"...","exit_code":5,"retryable":false,"retry_after_ms":null,"hint":"...","fix_command":null}}
```

Codes are stable: new versions only add codes. The exit status tells the kind of error, the code tells which error. For symptoms
without a code see [troubleshooting](../guide/troubleshooting.md).

## Exit statuses

| status | meaning |
|---|---|
"#;

#[test]
fn errors() {
    let manifest = manifest();
    let mut out = format!("# Errors and exit statuses\n{MADE}\n\n{INTRODUCTION}");
    for status in items(&manifest, "exit_codes") {
        let _ = writeln!(out, "| {} | {} |", status["exit_code"], cell(text(status, "about")));
    }
    out.push_str("\n`run`, `shell` and `lock run` return the status of their command; their own errors are 124 to 127.\n");
    out.push_str("\n## Codes\n");
    for code in items(&manifest, "error_codes") {
        let retry = if code["retryable"] == true { ", retryable" } else { "" };
        let _ = write!(
            out,
            "\n### `{}`\n\n{} Exit status {}{retry}.\n\n- Cause: {}\n- Remedy: {}\n",
            text(code, "code"),
            text(code, "about"),
            code["exit_code"],
            text(code, "cause"),
            text(code, "remedy"),
        );
    }
    out.push_str("\n## Codes of every command\n\n");
    let common: Vec<String> =
        sessile_cli::effects::COMMON.iter().map(|code| format!("`{}`", code.as_str())).collect();
    let _ = writeln!(out, "{}.", common.join(", "));
    out.push_str("\nThe [entry](commands/README.md) of a command lists its further codes.\n");
    repository::assert_generated("docs/reference/errors.md", &out);
}

/// A remedy names a command that the parser accepts.
#[test]
fn every_code_has_a_cause_and_a_remedy() {
    let manifest = manifest();
    let codes = items(&manifest, "error_codes");
    for code in codes {
        let name = text(code, "code");
        for key in ["cause", "remedy"] {
            let sentence = text(code, key);
            assert!(sentence.len() > 10 && sentence.ends_with('.'), "{name}: {key}: {sentence}");
        }
        for command in text(code, "remedy").split('`').skip(1).step_by(2) {
            assert_parses(name, command);
        }
    }
    let known: Vec<&Value> = codes.iter().filter(|code| code["remedy"] != "").collect();
    assert!(known.len() > 100, "the manifest lists too few codes: {}", known.len());
}
