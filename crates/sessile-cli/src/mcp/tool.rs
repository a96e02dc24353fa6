//! Tool as data: arguments, result and command.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{JsonObject, Tool as Listed, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::effects::{self, CommandEffect};

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// Command of the tool; its effect is in the table of effects.
    pub(super) command: &'static str,
    pub(super) about: &'static str,
    pub(super) input: &'static [Input],
    /// Required members of its result.
    pub(super) output: &'static [Field],
    pub(super) shape: Shape,
    /// Member of an item that continues the list after it, if the list has pages.
    pub(super) page_key: Option<&'static str>,
    /// Member of its items that clients are not to know.
    pub(super) hidden: Option<&'static str>,
    /// Fixed arguments of the command.
    pub(super) always: &'static [&'static str],
    /// Whether it requires a session, because its command would change shared state outside one.
    pub(super) needs_session: bool,
    /// Timeout.
    pub(super) limit: Limit,
}

/// Mapping of the command's output to a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Output is the result.
    Object,
    /// Output is a list, which the result holds under this name, with its count.
    List(&'static str),
    /// Output is text, returned with the exit status.
    Captured,
}

/// Timeout of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// Timeout of local work.
    Usual,
    /// As the argument of this name says, which the command obeys; else this long.
    Given(&'static str, &'static str),
    /// Argument of this name, else this default, added to the usual timeout.
    Longer(&'static str, &'static str),
}

/// The time for what happens on this machine alone.
pub(super) const USUAL: Duration = Duration::from_secs(60);

/// Argument of a tool.
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) kind: InputKind,
    pub(super) to: InputTarget,
    pub(super) about: &'static str,
    pub(super) required: bool,
}

/// Kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputKind {
    Text,
    Number,
    Switch,
    /// A list of texts.
    Words,
    /// Any JSON.
    Anything,
}

/// Destination of an argument in the invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputTarget {
    /// A word of the command.
    Word,
    /// Value of a flag, or a switch.
    Flag(&'static str),
    /// The value of a flag that names a file or directory, which must be in the server's directory.
    PathFlag(&'static str),
    /// Conversation to continue, by its id; by its name, one that is started if it does not exist.
    Conversation,
    /// Number of items on a page.
    PageLimit,
    /// Standard input.
    Stdin,
    /// The directory it is called in.
    Directory,
}

/// Member of a result.
pub(super) struct Field {
    pub(super) name: &'static str,
    /// JSON Schema type; `None` if nullable.
    kind: Option<&'static str>,
}

/// Required text.
pub(super) const fn needs(name: &'static str, to: InputTarget, about: &'static str) -> Input {
    Input { name, kind: InputKind::Text, to, about, required: true }
}

/// Optional text.
pub(super) const fn takes(name: &'static str, to: InputTarget, about: &'static str) -> Input {
    Input { name, kind: InputKind::Text, to, about, required: false }
}

impl Input {
    pub(super) const fn number(mut self) -> Self {
        self.kind = InputKind::Number;
        self
    }

    pub(super) const fn switch(mut self) -> Self {
        self.kind = InputKind::Switch;
        self
    }

    pub(super) const fn words(mut self) -> Self {
        self.kind = InputKind::Words;
        self
    }

    pub(super) const fn anything(mut self) -> Self {
        self.kind = InputKind::Anything;
        self
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            InputKind::Text => json!({ "type": "string" }),
            InputKind::Number => json!({ "type": "integer" }),
            InputKind::Switch => json!({ "type": "boolean" }),
            InputKind::Words => json!({ "type": "array", "items": { "type": "string" } }),
            InputKind::Anything => json!({}),
        };
        if !self.about.is_empty() {
            schema["description"] = json!(self.about);
        }
        schema
    }
}

/// A field that is always something.
pub(super) const fn has(name: &'static str, kind: &'static str) -> Field {
    Field { name, kind: Some(kind) }
}

/// A field that may be null.
pub(super) const fn may_have(name: &'static str) -> Field {
    Field { name, kind: None }
}

impl Tool {
    /// Whether it changes nothing.
    pub(super) fn only_reads(&self) -> bool {
        self.entry().is_some_and(|entry| entry.effect == CommandEffect::Read)
    }

    /// Whether it runs arbitrary commands.
    pub(super) fn runs_commands(&self) -> bool {
        self.shape == Shape::Captured
    }

    /// Whether it can be read in this process: it changes nothing, and waits for no agent.
    pub(super) fn reads_in_process(&self) -> bool {
        self.only_reads() && !self.runs_commands() && matches!(self.limit, Limit::Usual)
    }

    fn entry(&self) -> Option<&'static effects::CommandEntry> {
        effects::entry(self.command)
    }

    /// Entry in the list of tools.
    pub(super) fn listed(&self) -> Listed {
        let listed = Listed::new(self.name, self.about, Arc::new(self.input_schema()))
            .with_annotations(self.annotations());
        // A schema that says nothing but that the result is an object costs a model more than it tells a program.
        if self.output.is_empty() {
            listed
        } else {
            listed.with_raw_output_schema(Arc::new(self.output_schema()))
        }
    }

    fn input_schema(&self) -> JsonObject {
        let properties: Map<String, Value> =
            self.input.iter().map(|input| (input.name.to_owned(), input.schema())).collect();
        let required: Vec<&str> =
            self.input.iter().filter(|input| input.required).map(|input| input.name).collect();
        object(properties, &required)
    }

    fn output_schema(&self) -> JsonObject {
        object(properties_of(self.output), &required_of(self.output))
    }

    /// Annotations from the table of effects. Defaults of the protocol are omitted, except for the destructive hint.
    fn annotations(&self) -> ToolAnnotations {
        let mut annotations = ToolAnnotations::new();
        let Some(entry) = self.entry() else { return annotations };
        // What a command does that it is told to run, nobody knows.
        let anything = self.runs_commands();
        if entry.effect == CommandEffect::Read {
            annotations.read_only_hint = Some(true);
        } else {
            annotations.destructive_hint = Some(anything || entry.effect == CommandEffect::Destructive);
            annotations.idempotent_hint = entry.idempotent.then_some(true);
        }
        annotations.open_world_hint = (!entry.outside && !anything).then_some(false);
        annotations
    }
}

fn object(properties: Map<String, Value>, required: &[&str]) -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

fn properties_of(fields: &[Field]) -> Map<String, Value> {
    let schema = |field: &Field| field.kind.map_or_else(|| json!({}), |kind| json!({ "type": kind }));
    fields.iter().map(|field| (field.name.to_owned(), schema(field))).collect()
}

fn required_of(fields: &[Field]) -> Vec<&'static str> {
    fields.iter().filter(|field| field.kind.is_some()).map(|field| field.name).collect()
}
