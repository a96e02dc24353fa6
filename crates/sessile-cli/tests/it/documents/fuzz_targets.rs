//! The fuzz targets: every list of them agrees, and the corpus of requests has one for each operation of the API.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn entries(path: &str) -> BTreeSet<String> {
    let name = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    std::fs::read_dir(root().join(path)).unwrap().map(|entry| name(entry.unwrap().path())).collect()
}

/// The names in the `fuzz_tests!` list of a crate.
fn tested(krate: &str) -> Vec<String> {
    let source = read(&format!("crates/{krate}/src/fuzz.rs"));
    let list = source.split("fuzz_tests!(").nth(1).unwrap().split(')').next().unwrap();
    list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

#[test]
fn target_lists_agree() {
    let tested: BTreeSet<String> =
        ["sessile", "sessile-cli", "sessile-server"].iter().flat_map(|krate| tested(krate)).collect();
    assert_eq!(entries("fuzz/fuzz_targets"), tested, "fuzz/fuzz_targets/ and the tests");
    assert_eq!(entries("fuzz/corpus"), tested, "fuzz/corpus/ and the tests");
    let manifest = read("fuzz/Cargo.toml");
    let bins = manifest.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let bins: BTreeSet<String> = bins.filter(|name| *name != "sessile-fuzz").map(str::to_owned).collect();
    assert_eq!(bins, tested, "fuzz/Cargo.toml and the tests");
}

#[test]
fn request_corpus_covers_every_operation() {
    let openapi: serde_json::Value = serde_json::from_str(&read("docs/reference/openapi.json")).unwrap();
    let corpus: Vec<(String, String)> = std::fs::read_dir(root().join("fuzz/corpus/http_request"))
        .unwrap()
        .map(|entry| first_line(&entry.unwrap().path()))
        .collect();
    for (path, operations) in openapi["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let covers =
                |(used, at): &(String, String)| used.eq_ignore_ascii_case(method) && matches(path, at);
            assert!(corpus.iter().any(covers), "no request in fuzz/corpus/http_request for {method} {path}");
        }
    }
}

/// The method and the path of a request.
fn first_line(file: &Path) -> (String, String) {
    let request = String::from_utf8(std::fs::read(file).unwrap()).unwrap();
    let mut words = request.lines().next().unwrap().split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    (method.to_owned(), target.split('?').next().unwrap().to_owned())
}

fn matches(pattern: &str, path: &str) -> bool {
    let is_same = |(pattern, segment): (&str, &str)| pattern.starts_with('{') || pattern == segment;
    pattern.split('/').count() == path.split('/').count()
        && pattern.split('/').zip(path.split('/')).all(is_same)
}
