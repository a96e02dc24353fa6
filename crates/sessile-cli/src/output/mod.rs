//! The output contract: text for people and pipes, one JSON document with `--output json`, nothing else on
//! standard output; warnings, notes and errors on standard error.

mod buffers;
mod progress;
mod stderr_line;
mod table;
mod wrap;

use std::io::{self, Write};
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::Value;
use sessile::Warning;
use sessile::args::{Color, OutputFormat};
use sessile::error::ReportBody;
use sessile::text::{json_safe, shown, shown_lines};
use sessile::{App, World};

use crate::error::Failure;

pub(crate) use buffers::OutputBuffers;
pub(crate) use progress::SlowStep;
pub(crate) use stderr_line::StderrLine;
pub use table::Table;
pub(crate) use wrap::{labelled, wrapped};

/// Columns of a terminal that tables and texts take at most.
const LINE_WIDTH: usize = 80;

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
    /// Buffers of a caller in this process, instead of the standard streams.
    buffers: Option<Arc<OutputBuffers>>,
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
            buffers: None,
        }
    }

    /// Output into buffers, if any are passed.
    pub(crate) fn into_buffers(self, buffers: Option<Arc<OutputBuffers>>) -> Self {
        Output { buffers, ..self }
    }

    /// Buffers that the output is printed into.
    pub(crate) fn buffers(&self) -> Option<&Arc<OutputBuffers>> {
        self.buffers.as_ref()
    }

    /// Whether results are text.
    pub fn is_text(&self) -> bool {
        self.format == OutputFormat::Text
    }

    /// Whether only the result is wanted.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether details are wanted.
    pub fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Whether the format has room for one event after the other.
    pub fn prints_events(&self) -> bool {
        self.format != OutputFormat::Json
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
        Ok(self.write_out(text)?)
    }

    /// Prints bytes, where standard output is not a terminal.
    pub(crate) fn print_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        Ok(out.write_all(bytes).and_then(|()| out.flush())?)
    }

    fn write_out(&self, text: &str) -> io::Result<()> {
        if let Some(buffers) = &self.buffers {
            buffers.write_out(text);
            return Ok(());
        }
        progress::clear();
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        // A full disk or a closed pipe is noticed here, and not lost when the process exits.
        out.flush()
    }

    /// Says something beside the result.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.say_note(text);
        }
    }

    /// Says where a list goes on: to people the hint, to programs the cursor.
    pub fn next_cursor(&self, cursor: &str, hint: &str) {
        match self.format {
            _ if self.quiet => {}
            OutputFormat::Text => self.say_note(hint),
            _ => self.say(&json_line(&to_value(&StderrLine::NextCursor(cursor.to_owned())))),
        }
    }

    /// Prints one faint line beside a result, if it has words.
    pub fn aside(&self, text: &str) {
        if self.quiet || text.is_empty() {
            return;
        }
        match self.format {
            OutputFormat::Text => {
                let line = toned(&shown_lines(text), Tone::Faint, self.color_err);
                self.say(&format!("{line}\n"));
            }
            _ => self.say_note(text),
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
        if self.shows_progress() {
            progress::show(&format!("{} ...", shown(text)), self.color_err);
        }
    }

    /// Clears the progress line.
    pub fn progress_over(&self) {
        if self.shows_progress() {
            progress::clear();
        }
    }

    /// Begins a step that can take long. While a person watches, a line with the elapsed time appears after a second, until
    /// the step is dropped.
    pub(crate) fn slow_step<T: AsRef<str>>(&self, text: impl FnOnce() -> T) -> SlowStep {
        if self.shows_progress() {
            SlowStep::start(text().as_ref(), self.color_err)
        } else {
            SlowStep::silent()
        }
    }

    /// Whether a person sees the progress of a step.
    pub(crate) fn shows_progress(&self) -> bool {
        self.watched && !self.quiet && self.is_text() && self.buffers.is_none()
    }

    /// Ends a line of text that events left open.
    pub fn end_line(&self) {
        if self.is_text() {
            let _ = self.write_out("\n");
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
        // A closed standard output must not end the stream: later events are still stored.
        let _ = self.write_out(&line);
    }

    /// Prints a line of the wire log (`--debug`).
    pub(crate) fn wire_line(&self, line: &str) {
        self.say(&format!("{line}\n"));
    }

    /// Prints JSON of an agent as the protocol has it: in lines of its own, or on one.
    pub(crate) fn protocol_json(&self, json: &Value, is_line: bool) -> Result<(), Failure> {
        let is_line = is_line || self.format == OutputFormat::Jsonl;
        self.print(&if is_line { json_line(json) } else { json_text(json) })
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
        if let Some(buffers) = &self.buffers {
            return buffers.write_err(text);
        }
        progress::clear();
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
