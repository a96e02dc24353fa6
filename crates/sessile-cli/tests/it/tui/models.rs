//! The view models stay free of the terminal, so that another front end can use them.

use crate::repository;

#[test]
fn view_models_know_no_terminal() {
    let dirs = ["crates/sessile-cli/src/tui/model", "crates/sessile-cli/src/chat/model"];
    for dir in dirs {
        let of_models: Vec<_> =
            repository::files(".rs").into_iter().filter(|path| path.starts_with(dir)).collect();
        assert!(of_models.len() > 3, "{dir}: {of_models:?}");
        for path in of_models {
            let text = repository::read(&path);
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for (number, line) in code.enumerate() {
                let is_of_terminal =
                    ["ratatui", "crossterm", "tui::theme", "tui::screen_text", "tui::terminal"]
                        .into_iter()
                        .find(|name| line.contains(name));
                assert_eq!(is_of_terminal, None, "{} line of code {number}: {line}", path.display());
            }
        }
    }
}
