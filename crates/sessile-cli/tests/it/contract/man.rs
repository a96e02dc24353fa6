//! `sessile man`: manual pages out of the same tree as the parser.

use sessile_cli::effects::TABLE;

use crate::home;

#[test]
fn the_page_of_the_program_is_printed() {
    let page = home().call(&["man"]).ok().stdout();
    assert!(page.starts_with(".ie"), "{}", &page[..40]);
    assert!(page.contains(".TH sessile 1"));
    assert!(page.contains("Precedence, strongest first"));
}

#[test]
fn a_page_for_each_command_is_written_into_a_directory() {
    let home = home();
    let done = home.call(&["man", "--dir", "pages/man1", "--output", "json"]).ok();
    let pages = done.json()["pages"].as_array().unwrap().len();
    for entry in TABLE {
        let name = format!("sessile-{}.1", entry.path.replace(' ', "-"));
        let page = home.read(format!("pages/man1/{name}"));
        assert!(page.contains(".SH EXTRA") || page.contains("Examples:"), "{name} has no examples");
    }
    assert!(home.read("pages/man1/sessile.1").contains("sessile\\-context"));
    let written = std::fs::read_dir(home.path("pages/man1")).unwrap().filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with(".1"))
    });
    assert_eq!(written.count(), pages, "and nothing else");
}
