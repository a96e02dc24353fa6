//! A tool: what it takes and gives, and which call of the program it is. All of it is data.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{JsonObject, Tool as Listed, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::effects::{self, CommandEffect};

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// The command it calls. What that does is said in the table of effects.
    pub(super) command: &'static str,
    pub(super) about: &'static str,
    pub(super) input: &'static [Input],
    /// Required members of its result.
    pub(super) output: &'static [Field],
    pub(super) shape: Shape,
    /// Words of the command that are always said.
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
    /// The value of a flag, or a flag that is there or not.
    Flag(&'static str),
    /// Standard input.
    Stdin,
    /// The directory it is called in.
    Directory,
}

/// Member of a result.
pub(super) struct Field {
    name: &'static str,
    /// JSON Schema type; `None` if nullable.
    kind: Option<&'static str>,
}

/// A text that must be given.
pub(super) const fn needs(name: &'static str, to: InputTarget, about: &'static str) -> Input {
    Input { name, kind: InputKind::Text, to, about, required: true }
}

/// A text that may be given.
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

    fn entry(&self) -> Option<&'static effects::CommandEntry> {
        effects::entry(self.command)
    }

    /// Entry in the list of tools.
    pub(super) fn listed(&self) -> Listed {
        Listed::new(self.name, self.about, Arc::new(self.input_schema()))
            .with_raw_output_schema(Arc::new(self.output_schema()))
            .with_annotations(self.annotations())
    }

    fn input_schema(&self) -> JsonObject {
        let properties: Map<String, Value> =
            self.input.iter().map(|input| (input.name.to_owned(), input.schema())).collect();
        let required: Vec<&str> =
            self.input.iter().filter(|input| input.required).map(|input| input.name).collect();
        object(properties, &required)
    }

    fn output_schema(&self) -> JsonObject {
        let mut properties = Map::new();
        let mut required = Vec::new();
        if let Shape::List(name) = self.shape {
            properties.insert("count".to_owned(), json!({ "type": "integer" }));
            let mut list = json!({ "type": "array" });
            if !self.output.is_empty() {
                // Nothing is required of an item: one field would make strict clients refuse the list.
                list["items"] = Value::Object(object(properties_of(self.output), &[]));
            }
            properties.insert(name.to_owned(), list);
        } else {
            properties = properties_of(self.output);
            required = required_of(self.output);
        }
        object(properties, &required)
    }

    /// What a client may know before it calls: it is what the table of effects says of the command. What the protocol
    /// takes for granted is left unsaid, except whether something is destroyed.
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
