//! Counts in words.

/// A number of things: `1 context`, `2 contexts`, `3 copies`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    match (count, thing.strip_suffix('y')) {
        (1, _) => format!("{count} {thing}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {thing}s"),
    }
}

#[test]
fn counted_things_have_a_plural() {
    assert_eq!([0, 1, 2].map(|count| counted(count, "file")), ["0 files", "1 file", "2 files"]);
    assert_eq!([1, 2].map(|count| counted(count, "copy")), ["1 copy", "2 copies"]);
}
