//! The tutorials, played from the first command to the last.

use crate::repository;

use super::console::{ConsolePage, assert_page};

#[test]
fn first_session_prints_the_reference_output() {
    assert_page(&ConsolePage { path: "docs/tutorials/first-session.md", ..Default::default() });
}

#[test]
fn guard_production_prints_the_reference_output() {
    testkit::require_tool("kubectl");
    assert_page(&ConsolePage { path: "docs/tutorials/guard-production.md", ..Default::default() });
}

#[test]
fn a2a_prints_the_reference_output() {
    assert_page(&ConsolePage { path: "docs/tutorials/a2a.md", port: Some("8738"), ..Default::default() });
}

#[test]
fn service_prints_the_reference_output() {
    testkit::require_tool("curl");
    assert_page(&ConsolePage { path: "docs/tutorials/service.md", port: Some("8737"), ..Default::default() });
}

#[test]
fn add_a_tool_prints_the_reference_output() {
    assert_page(&ConsolePage { path: "docs/tutorials/add-a-tool.md", ..Default::default() });
}

/// Every tutorial runs: here, or as an example of the library.
#[test]
fn every_tutorial_has_a_test() {
    let source = repository::read("crates/sessile-cli/tests/it/documents/tutorials.rs")
        + &repository::read("crates/sessile/src/lib.rs");
    let mut found = 0;
    for file in repository::files(".md") {
        if file.starts_with("docs/tutorials") && file.file_name().is_some_and(|name| name != "README.md") {
            assert!(source.contains(&*file.to_string_lossy()), "no test runs {}", file.display());
            found += 1;
        }
    }
    assert!(found >= 5, "{found} tutorials found");
}
