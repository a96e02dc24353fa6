//! Tools that are tried by their files: what a session's copy of a file holds.

use testkit::Home;

use crate::room;

/// A file of a tool, and what a session's copy of it holds of the targets in it.
pub(super) struct FileCase {
    pub(super) tool: &'static str,
    pub(super) binding: &'static str,
    pub(super) original: &'static str,
    pub(super) copy: &'static str,
    pub(super) text: &'static str,
    pub(super) stays: &'static [&'static str],
    pub(super) goes: &'static [&'static str],
}

impl FileCase {
    /// The tool's table of a context that has the binding.
    pub(super) fn context(&self) -> String {
        format!("[tools.{}]\n{}\n", self.tool, self.binding)
    }

    /// The level at which the file is copied: no variable moves what is below the home.
    pub(super) fn level(&self) -> &'static str {
        if self.copy.starts_with("home/") { "home" } else { "env" }
    }

    /// Writes the user's own file.
    pub(super) fn write(&self, home: &Home) {
        home.write(self.original, self.text);
    }

    /// Checks the session's copy, and that the user's own file is as it was. A file that goes whole holds nothing.
    pub(super) fn check(&self, home: &Home, session: &str) {
        let FileCase { tool, original, copy, text, stays, goes, .. } = self;
        let held = std::fs::read_to_string(room(home, session).join(copy)).unwrap_or_default();
        for word in *stays {
            assert!(held.contains(word), "{tool}: {word} in {held}");
        }
        for word in *goes {
            assert!(text.contains(word), "{tool}: {word} is in the original");
            assert!(!held.contains(word), "{tool}: {word} in {held}");
        }
        assert_eq!(home.read(original), *text, "{tool}: the user's own file is as it was");
    }
}
