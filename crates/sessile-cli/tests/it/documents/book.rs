//! The book of the documentation: every page is in it, and its links lead somewhere.

#![expect(clippy::disallowed_methods, reason = "a test reads the built book directly")]

use std::path::{Path, PathBuf};

use crate::repository;

/// Pages of the summary, as paths in the repository.
fn pages_of_the_summary() -> Vec<PathBuf> {
    let summary = repository::read("docs/SUMMARY.md");
    let targets = summary.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let pages = targets.map(|(page, _)| match page.strip_prefix("../") {
        Some(outside) => PathBuf::from(outside),
        None => Path::new("docs").join(page),
    });
    pages.collect()
}

#[test]
fn every_page_is_in_the_summary_once() {
    let mut listed = pages_of_the_summary();
    listed.sort();
    let mut pages: Vec<PathBuf> =
        repository::files(".md").into_iter().filter(|file| file.starts_with("docs")).collect();
    pages.retain(|page| page != Path::new("docs/SUMMARY.md"));
    pages.extend(["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(PathBuf::from));
    pages.extend(
        repository::files("README.md")
            .into_iter()
            .filter(|file| file.starts_with("examples") || file.starts_with("fuzz")),
    );
    pages.sort();
    assert_eq!(listed, pages);
}

/// Values of an attribute in a page.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    html.split(&*start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn book_is_built_and_its_links_lead_somewhere() {
    testkit::require_tool("mdbook");
    let dir = tempfile::tempdir().unwrap();
    let built = std::process::Command::new(repository::root().join("scripts/book"))
        .arg(dir.path())
        .env("PATH", testkit::tool_path())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let html = dir.path().join("html");
    let mut checked = 0;
    let mut wrong = Vec::new();
    for page in pages_of_the_summary() {
        let is_index = page.file_name().is_some_and(|name| name == "README.md");
        let page = if is_index { page.with_file_name("index.html") } else { page.with_extension("html") };
        let text = std::fs::read_to_string(html.join(&page)).unwrap();
        let main = text.split_once("<main>").map_or(&*text, |(_, main)| main);
        let main = main.split_once("</main>").map_or(main, |(main, _)| main);
        for link in values(main, "href").into_iter().chain(values(main, "src")) {
            if link.contains("://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() {
                html.join(&page)
            } else {
                html.join(page.with_file_name("")).join(path)
            };
            let has_anchor =
                || std::fs::read_to_string(&target).is_ok_and(|text| values(&text, "id").contains(&anchor));
            if !target.exists() || !anchor.is_empty() && !has_anchor() {
                wrong.push(format!("{}: {link}", page.display()));
            }
            checked += 1;
        }
    }
    assert!(wrong.is_empty(), "links of the book lead nowhere:\n{}", wrong.join("\n"));
    assert!(checked > 300, "{checked} links found");
}

/// Numbers of tool profiles, which the README and the guide state.
#[test]
fn documents_state_the_number_of_profiles() {
    let profiles: Vec<String> = std::fs::read_dir(repository::root().join("tools"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let count = |level: &str| {
        let line = format!("env-level = \"{level}\"");
        profiles.iter().filter(|profile| profile.lines().any(|found| found == line)).count()
    };
    let (partial, none) = (count("partial"), count("none"));
    let full = profiles.len() - partial - none;
    let readme = repository::read("README.md").replace('\n', " ");
    for text in [
        format!("{} [tool profiles](docs/guide/tools.md) are built in", profiles.len()),
        format!("isolates {full} tools fully and {partial} partly. The other {none} need"),
    ] {
        assert!(readme.contains(&text), "README.md does not state: {text}");
    }
    let guide = format!("{} profiles are built in", profiles.len());
    assert!(repository::read("docs/guide/tools.md").contains(&guide), "docs/guide/tools.md: {guide}");
}
