//! The picture of the README: a terminal with real commands and their real output, as SVG. The other pictures are made by
//! `scripts/screenshots`.

use std::collections::BTreeSet;

use crate::repository;

use super::console::play;

/// State of the picture: two kube contexts, production selected, and a context for each.
const SETUP: &[&str] = &[
    "kubectl config set-cluster dev --server https://dev.example",
    "kubectl config set-cluster prod --server https://prod.example",
    "kubectl config set-context staging --cluster dev --user dev",
    "kubectl config set-context production --cluster prod --user admin",
    "kubectl config use-context production",
    "sessile import --yes",
];

/// Commands of the picture, each with a comment above.
const TYPED: &[(&str, &str)] = &[
    ("every program on this machine points at production", "kubectl config current-context"),
    ("an agent in staging does not", "sessile run --context staging -- kubectl config current-context"),
    (
        "production does not exist there",
        "sessile run --context staging -- kubectl config get-contexts --output name",
    ),
    ("until you approve it", "sessile run --context production -- kubectl get pods"),
];

const LINE: usize = 20;
const LEFT: usize = 16;
const TOP: usize = 30;
const WIDTH: usize = 880;

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A line of the terminal, in colors.
fn colored(line: &str) -> String {
    let colored = |color: &str, head: &str, rest: &str| {
        format!("<tspan fill=\"{color}\">{}</tspan>{}", escaped(head), escaped(rest))
    };
    for (head, color) in [("# ", "#8b949e"), ("$ ", "#7ee787"), ("error:", "#ff7b72"), ("hint:", "#79c0ff")] {
        if let Some(rest) = line.strip_prefix(head) {
            return if head == "# " { colored(color, line, "") } else { colored(color, head, rest) };
        }
    }
    escaped(line)
}

fn svg(lines: &[String]) -> String {
    let height = TOP + lines.len() * LINE + LINE / 2;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"sessile run keeps an agent in staging\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <g font-family=\"ui-monospace, monospace\" font-size=\"14\" fill=\"#e6edf3\" xml:space=\"preserve\">\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = TOP + number * LINE;
        out.push_str(&format!("<text x=\"{LEFT}\" y=\"{y}\">{}</text>\n", colored(line)));
    }
    out.push_str("</g>\n</svg>\n");
    out
}

#[test]
fn picture_shows_the_reference_output() {
    testkit::require_tool("kubectl");
    let home = crate::home();
    home.write("shop/README", "");
    let commands: Vec<String> =
        SETUP.iter().chain(TYPED.iter().map(|(_, typed)| typed)).map(|typed| (*typed).to_owned()).collect();
    let outputs = play(&home, &commands);
    let mut lines = Vec::new();
    for ((comment, typed), printed) in TYPED.iter().zip(&outputs[SETUP.len()..]) {
        assert!(!printed.is_empty(), "{typed} printed nothing");
        lines.extend([format!("# {comment}"), format!("$ {typed}")]);
        lines.extend(printed.lines().map(str::to_owned));
        lines.push(String::new());
    }
    lines.pop();
    // About 8.4 pixels a character.
    let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    assert!(longest < 102, "a line of {longest} characters does not fit into the picture");
    repository::assert_generated("docs/pictures/run.svg", &svg(&lines));
}

/// Size of a picture that a page can have, in bytes.
const LARGEST: usize = 16 * 1024;

#[test]
fn pictures_of_the_documents_exist_and_have_a_maker() {
    let script = repository::read("scripts/screenshots");
    let mut shown = BTreeSet::new();
    for page in repository::files(".md") {
        let text = repository::read(&page);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if let Some((_, name)) = target.rsplit_once("pictures/").filter(|_| target.ends_with(".svg")) {
                shown.insert(name.to_owned());
            }
        }
    }
    let pictures = repository::files(".svg").into_iter().filter(|path| path.starts_with("docs/pictures"));
    let made: BTreeSet<String> =
        pictures.map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned()).collect();
    assert_eq!(shown, made, "the documents show every picture, and only existing ones");
    for name in &made {
        let stem = name.trim_end_matches(".svg");
        assert!(
            stem == "run" || script.contains(&format!("\"{stem}\"")),
            "scripts/screenshots does not make {name}"
        );
        let size = repository::read(format!("docs/pictures/{name}")).len();
        assert!(size <= LARGEST, "{name} has {size} bytes");
    }
}
