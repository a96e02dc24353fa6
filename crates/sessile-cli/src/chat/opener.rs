//! Artifacts opened with the program of the desktop. Files of agents are untrusted: the person confirms each, a file is saved
//! without permission to execute, and of links only web addresses are opened.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sessile::error::UsageError;
use sessile::text::quoted;

use super::model::ChatArtifact;
use crate::agent_session::save_parts;
use crate::cli::Cx;
use crate::error::Failure;

/// Setting of the program.
pub(crate) const SETTING: &str = "chat.opener";

/// Opens an artifact. Returns the paths of the files that were saved for it.
pub(super) fn open(cx: &Cx, artifact: &ChatArtifact, dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let opener = cx.state.settings()?.get(SETTING)?.map(|found| found.value.to_string()).unwrap_or_default();
    if let Some(url) = artifact.link() {
        require_web_address(url)?;
        start(&opener, url)?;
        return Ok(Vec::new());
    }
    let saved = save_parts(dir, &artifact.name, artifact.parts.clone())?;
    for path in &saved {
        start(&opener, &path.to_string_lossy())?;
    }
    Ok(saved)
}

/// Fails for other schemes: the desktop would start a program that the agent chooses, or open a local file.
fn require_web_address(url: &str) -> Result<(), UsageError> {
    if url.starts_with("https://") || url.starts_with("http://") {
        return Ok(());
    }
    Err(UsageError::Arguments(format!("refusing to open {}: it is not a web address", quoted(url))))
}

fn start(opener: &str, target: &str) -> Result<(), Failure> {
    let failed = |reason: String| {
        UsageError::Arguments(format!("cannot open {}: {}: {reason}", quoted(target), quoted(opener)))
    };
    // The setting may hold arguments. No shell is involved.
    let mut words = opener.split_whitespace();
    let program = words.next().ok_or_else(|| failed(format!("set {SETTING} to a program")))?;
    let child = Command::new(program)
        .args(words)
        .arg(target)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let status = child.and_then(|mut child| child.wait());
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(status.to_string()).into()),
        Err(error) => Err(failed(error.to_string()).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn link_of_another_scheme_is_refused() {
        for url in ["https://agent.example/report", "http://127.0.0.1:8080/x?y#z"] {
            require_web_address(url).unwrap();
        }
        for url in [
            "",
            "file:///etc/passwd",
            "/usr/bin/program",
            "./program",
            "--help",
            "-https://agent.example",
            " https://agent.example",
            "\nhttps://agent.example",
            "//agent.example",
            "https:agent.example",
            "httpss://agent.example",
            "javascript:alert(1)",
            "vbscript:x",
            "data:text/html,x",
            "ssh://agent.example",
            "smb://agent.example/share",
            "vscode://file/etc/passwd",
            "search-ms:query=x",
            "\u{1b}]8;;https://agent.example",
        ] {
            let error = require_web_address(url).unwrap_err().to_string();
            assert!(error.contains("not a web address") && !error.contains(char::is_control), "{error:?}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test writes a program and reads its output")]
    fn target_is_one_argument_and_reaches_no_shell() {
        let dir = tempfile::tempdir().unwrap();
        let (program, seen) = (dir.path().join("opener"), dir.path().join("seen"));
        let script = format!("#!/bin/sh\nprintf '%s|' \"$@\" > '{}'\n", seen.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let target = "https://agent.example/$(touch x); `id` && x 'y' \"z\"";
        start(&format!("{} --new-window", program.display()), target).unwrap();
        assert_eq!(std::fs::read_to_string(seen).unwrap(), format!("--new-window|{target}|"));
        assert!(start("", target).is_err() && start("/nonexistent/program", target).is_err());
    }
}
