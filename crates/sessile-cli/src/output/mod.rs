//! The output contract: text for people and pipes, one JSON document with `--output json`, nothing else on
//! standard output; warnings, notes and errors on standard error.

mod stderr_line;
mod table;

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::Value;
use sessile::Warning;
use sessile::args::{Color, OutputFormat};
use sessile::error::ReportBody;
use sessile::text::{json_safe, shown_lines};
use sessile::{App, World};

use crate::error::Failure;

pub(crate) use stderr_line::StderrLine;
pub use table::Table;

/// Meaning of a piece of text; this module alone decides its style.
#[derive(Clone, Copy, Debug)]
pub enum Tone {
    /// The thing that is current or that counts.
    Strong,
    /// Worth less attention.
    Faint,
    /// All is well.
    Good,
    /// Attention.
    Warning,
    /// Wrong.
    Bad,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Tone::Strong => Style::new().bold(),
            Tone::Faint => Style::new().dimmed(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Warning => AnsiColor::Yellow.on_default().bold(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// Output of a call.
#[derive(Clone, Debug)]
pub struct Output {
    format: OutputFormat,
    color_out: bool,
    color_err: bool,
    quiet: bool,
    verbose: bool,
    /// Whether a person watches standard error.
    watched: bool,
}

impl Output {
    /// Output in a world, in the given manner.
    pub fn new(world: &World, format: OutputFormat, color: Color, quiet: bool, verbose: bool) -> Self {
        let plain =
            // no-color.org: set, whatever its value.
            world.variable("NO_COLOR").is_some() || world.variable("TERM").is_some_and(|term| term == "dumb");
        let coloured = |terminal: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !plain && !world.is_ci(),
        };
        let streams = world.streams();
        Output {
            format,
            // Escape codes would make the JSON invalid.
            color_out: coloured(streams.stdout) && format == OutputFormat::Text,
            color_err: coloured(streams.stderr),
            quiet,
            verbose,
            // The progress line is cleared by an escape code, which a dumb terminal would print.
            watched: streams.stderr && !world.is_ci() && !plain,
        }
    }

    /// Whether results are text.
    pub fn is_text(&self) -> bool {
        self.format == OutputFormat::Text
    }

    /// Whether only the result is wanted.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Text in a tone, for standard output.
    pub fn toned(&self, text: &str, tone: Tone) -> String {
        toned(text, tone, self.color_out)
    }

    /// Prints one result: as JSON, or the text that `text` makes.
    pub fn result(&self, json: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Text => self.print(&text()),
            OutputFormat::Json => self.print(&json_text(json)),
            OutputFormat::Jsonl => self.print(&json_line(&to_value(json))),
        }
    }

    /// Prints a list: one JSON array, one line of JSON for each, or a table.
    pub fn list(&self, items: &[impl Serialize], text: impl FnOnce() -> String) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Text => self.print(&text()),
            OutputFormat::Json => self.print(&json_text(&items)),
            OutputFormat::Jsonl => {
                self.print(&items.iter().map(|item| json_line(&to_value(item))).collect::<String>())
            }
        }
    }

    /// Prints text that the caller has sanitized for terminals.
    pub fn print(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        // A full disk or a closed pipe is noticed here, and not lost when the process exits.
        out.flush()?;
        Ok(())
    }

    /// Says something beside the result.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.say_note(text);
        }
    }

    /// Says what somebody must know even with `--quiet`, because the call waits for them: to people as text, to programs
    /// as a line of JSON.
    pub fn ask_for(&self, json: &Value, text: &str) {
        if self.is_text() {
            self.say(&format!("{}\n", shown_lines(text)));
        } else {
            self.say(&json_line(json));
        }
    }

    /// Shows a progress line while a person watches; the result replaces it.
    pub fn progress(&self, text: &str) {
        if self.watched && !self.quiet && self.is_text() {
            // The next line takes its place.
            let text = toned(&format!("{} ...", shown_lines(text)), Tone::Faint, self.color_err);
            self.say(&format!("{text}\r"));
        }
    }

    /// Clears the progress line.
    pub fn progress_over(&self) {
        if self.watched && !self.quiet && self.is_text() {
            self.say("\x1b[K");
        }
    }

    /// Ends a line of text that events left open.
    pub fn end_line(&self) {
        if self.is_text() {
            let mut out = io::stdout().lock();
            let _ = out.write_all(b"\n").and_then(|()| out.flush());
        }
    }

    /// Prints an event of a stream: for people its text, as a line of JSON all of it.
    pub fn event(&self, event: &impl Serialize, text: &str, goes_on: bool) {
        let line = match self.format {
            OutputFormat::Jsonl => json_line(&to_value(event)),
            OutputFormat::Text if !text.is_empty() && goes_on => shown_lines(text),
            OutputFormat::Text if !text.is_empty() => {
                format!("{}\n", shown_lines(text.trim_end_matches('\n')))
            }
            _ => return,
        };
        let mut out = io::stdout().lock();
        // A reader that has gone must not end the stream: what comes is still stored.
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }

    /// Says something that only `--verbose` wants to know.
    pub fn detail(&self, text: &str) {
        if self.verbose {
            self.say_note(text);
        }
    }

    /// Prints warnings.
    pub fn warnings(&self, warnings: &[Warning]) {
        if self.quiet {
            return;
        }
        for warning in warnings {
            if self.is_text() {
                let label = toned("warning:", Tone::Warning, self.color_err);
                self.say(&warning.to_text(&label, &self.hint_label()));
            } else {
                self.say(&json_line(&to_value(&StderrLine::Warning(warning.clone()))));
            }
        }
    }

    /// Prints why a call failed.
    pub fn failure(&self, app: &App, failure: &Failure) {
        let Some(report) = failure.report(app) else { return };
        if self.is_text() {
            self.say(&report.to_text(&toned("error:", Tone::Bad, self.color_err), &self.hint_label()));
        } else {
            // A command that runs another exits with a status of its own.
            let body = ReportBody { exit_code: failure.exit(), ..report.to_body() };
            self.say(&json_line(&to_value(&StderrLine::Error(body))));
        }
    }

    fn say_note(&self, text: &str) {
        if self.is_text() {
            self.say(&format!("{}\n", shown_lines(text)));
        } else {
            self.say(&json_line(&to_value(&StderrLine::Note(text.to_owned()))));
        }
    }

    fn hint_label(&self) -> String {
        toned("hint:", Tone::Good, self.color_err)
    }

    fn say(&self, text: &str) {
        // If standard error is gone, there is nobody to tell.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

fn toned(text: &str, tone: Tone, colored: bool) -> String {
    if colored && !text.is_empty() {
        let style = tone.style();
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

/// JSON for people, indented and safe for terminals.
pub(crate) fn json_text(json: &impl Serialize) -> String {
    json_safe(&format!("{:#}\n", to_value(json)))
}

fn json_line(json: &Value) -> String {
    json_safe(&format!("{json}\n"))
}

fn to_value(json: &impl Serialize) -> Value {
    serde_json::to_value(json).unwrap_or_default()
}
