//! The layers on top of each other: which value wins, and what it shadows.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde::Serialize;

use crate::app::App;
use crate::error::{Error, FileLocation, Result, SettingsError, UsageError};
use crate::names::nearest;
use crate::settings::{Data, Definition, Document, Layer, Node, Origin, SettingKey, SettingKind, Value};
use crate::text::HIDDEN;

/// One source of values. Sources are kept strongest first.
#[derive(Clone, Debug)]
pub enum SettingSource {
    /// Values without a file: overrides by flags and variables, or a session's settings.
    Values(Vec<(SettingKey, Value, Origin)>),
    /// A file, or one table in it.
    File {
        /// Layer of the value.
        layer: Layer,
        /// The context it belongs to, for a context's settings.
        name: Option<String>,
        /// The file.
        document: Rc<Document>,
        /// The tables to go down to, for settings that are not at the file's top.
        within: Vec<String>,
        /// Whether settings that need trust count in it.
        trusted: bool,
    },
}

impl SettingSource {
    fn root(&self) -> Option<(&Document, &Node)> {
        let SettingSource::File { document, within, .. } = self else { return None };
        let root = within.iter().try_fold(document.root(), |node, name| node.get(name))?;
        Some((document, root))
    }
}

/// Reason why a value is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IgnoreReason {
    /// File of an untrusted project.
    Untrusted,
    /// Setting that is not allowed in this place.
    NotHere,
}

/// A value that one layer gives for a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// The value.
    pub value: Value,
    /// Origin.
    pub origin: Origin,
    /// Reason why it is ignored, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoreReason>,
}

/// Unknown key in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSetting {
    /// The key.
    pub key: SettingKey,
    /// Location.
    pub place: FileLocation,
    /// The known key nearest to it.
    pub near: Option<String>,
}

/// All sources of an invocation.
#[derive(Clone, Debug)]
pub struct Stack {
    app: App,
    sources: Vec<SettingSource>,
}

impl Stack {
    /// The sources, strongest first.
    pub fn new(app: &App, sources: Vec<SettingSource>) -> Self {
        Stack { app: app.clone(), sources }
    }

    /// The definition of a key, or an error with the nearest known one.
    pub fn definition(&self, key: &SettingKey) -> Result<&'static Definition> {
        definition(&self.app, key)
    }

    /// Every value that a layer gives for a key, strongest first, the built-in one last.
    pub fn explain(&self, key: &SettingKey) -> Result<Vec<Candidate>> {
        let definition = self.definition(key)?;
        let mut candidates = Vec::new();
        for source in &self.sources {
            match source {
                SettingSource::Values(values) => candidates.extend(
                    values.iter().filter(|(found, ..)| found == key).map(|(_, value, origin)| Candidate {
                        value: value.clone(),
                        origin: origin.clone(),
                        ignored: None,
                    }),
                ),
                SettingSource::File { .. } => candidates.extend(candidate_in(source, definition, key)?),
            }
        }
        // Built-in values are written as arguments, so that the reference shows them as people type them.
        if let Some(value) = definition.default.and_then(|text| definition.kind.parse(text)) {
            candidates.push(Candidate { value, origin: Origin::built_in(), ignored: None });
        }
        Ok(candidates)
    }

    /// The value that counts.
    pub fn resolve(&self, key: &SettingKey) -> Result<Option<Candidate>> {
        Ok(self.explain(key)?.into_iter().find(|candidate| candidate.ignored.is_none()))
    }

    /// The value that counts, by a key that the program itself knows.
    pub fn get(&self, key: &str) -> Result<Option<Candidate>> {
        // Keys that the program knows have no quoted segments.
        self.resolve(&SettingKey::new(key.split('.')))
    }

    /// Every key that some layer says, in order; with the built-in ones too if asked.
    pub fn keys(&self, with_defaults: bool) -> Vec<SettingKey> {
        let mut keys = BTreeSet::new();
        for source in &self.sources {
            match source {
                SettingSource::Values(values) => keys.extend(values.iter().map(|(key, ..)| key.clone())),
                SettingSource::File { .. } => self.walk(source, &mut |key, _, known| {
                    if known {
                        keys.insert(key.clone());
                    }
                }),
            }
        }
        if with_defaults {
            let defaults = self.app.settings().filter(|setting| setting.default.is_some());
            keys.extend(defaults.map(|setting| SettingKey::new(setting.key.split('.'))));
        }
        keys.into_iter().collect()
    }

    /// Unknown keys in files, up to the limit, and the number of further ones. A hostile file may hold a hundred
    /// thousand of them.
    pub fn unknown(&self, limit: usize) -> (Vec<UnknownSetting>, usize) {
        let mut unknown = Vec::new();
        let mut more = 0;
        for source in &self.sources {
            let Some((document, _)) = source.root() else { continue };
            self.walk(source, &mut |key, node, known| {
                if !known && unknown.len() == limit {
                    more += 1;
                } else if !known {
                    let place = document.place(node.offset);
                    let shown = if document.hides_keys() { SettingKey::new([HIDDEN]) } else { key.clone() };
                    unknown.push(UnknownSetting { key: shown, place, near: nearest_key(&self.app, key) });
                }
            });
        }
        (unknown, more)
    }

    /// The keys in untrusted files that would count if the files were trusted.
    pub fn untrusted(&self) -> Vec<(SettingKey, Origin)> {
        let mut found = Vec::new();
        for source in &self.sources {
            let SettingSource::File { trusted: false, layer, document, .. } = source else { continue };
            self.walk(source, &mut |key, node, _| {
                if self.app.setting(key.segments()).is_some_and(|setting| setting.needs_trust) {
                    found.push((
                        key.clone(),
                        Origin::in_file(*layer, document.path(), document.line(node.offset)),
                    ));
                }
            });
        }
        found
    }

    /// Every value in a file against its setting's kind; the first that is wrong is the error.
    pub fn check(&self) -> Result<()> {
        self.keys(false).iter().try_for_each(|key| self.explain(key).map(drop))
    }

    fn walk(&self, source: &SettingSource, visit: &mut dyn FnMut(&SettingKey, &Node, bool)) {
        if let Some((_, root)) = source.root() {
            let isolated = matches!(source, SettingSource::File { layer: Layer::File, .. });
            for (name, node) in root.members() {
                // In a file given with --config, contexts stand beside the settings.
                if !(isolated && name == "contexts") {
                    self.visit(&mut vec![name.clone()], node, visit);
                }
            }
        }
    }

    fn visit(&self, path: &mut Vec<String>, node: &Node, visit: &mut dyn FnMut(&SettingKey, &Node, bool)) {
        let known = self.app.setting(path).is_some();
        let is_leaf = node.members().is_empty();
        // A table that could hold settings and holds none says nothing.
        let says_nothing =
            || matches!(node.data, Data::Table(_)) && self.app.settings().any(|it| it.is_below(path));
        if known || is_leaf && !says_nothing() {
            visit(&SettingKey::new(path.iter().cloned()), node, known);
            return;
        }
        for (name, node) in node.members() {
            path.push(name.clone());
            self.visit(path, node, visit);
            path.pop();
        }
    }
}

/// The definition of a key, or an error with the nearest known one.
pub(crate) fn definition(app: &App, key: &SettingKey) -> Result<&'static Definition> {
    app.setting(key.segments()).ok_or_else(|| {
        Error::Settings(SettingsError::Unknown { key: key.to_string(), near: nearest_key(app, key) })
    })
}

fn nearest_key(app: &App, key: &SettingKey) -> Option<String> {
    nearest(&key.to_string(), app.settings().map(|setting| setting.key))
}

fn candidate_in(
    source: &SettingSource,
    definition: &Definition,
    key: &SettingKey,
) -> Result<Option<Candidate>> {
    let SettingSource::File { layer, name, trusted, .. } = source else { return Ok(None) };
    let Some((document, root)) = source.root() else { return Ok(None) };
    let Some(node) = key.segments().iter().try_fold(root, |node, name| node.get(name)) else {
        return Ok(None);
    };
    // An error even in an untrusted or shadowed file: the secret is there, whether it counts or not.
    if definition.kind == SettingKind::Secret && *layer != Layer::File {
        return Err(UsageError::SecretRefused {
            place: document.place(node.offset).to_string(),
            instead: "remove the token here; put a token for one call into its own file and pass it with --config",
        }.into());
    }
    // Before trust is looked at: a wrong value is reported in untrusted files too.
    let value = definition.read(node, key, document)?;
    let mut origin = Origin::in_file(*layer, document.path(), document.line(node.offset));
    origin.name.clone_from(name);
    let ignored = match () {
        // A context that selected another one could begin a chain without an end.
        () if *layer == Layer::Context && definition.key == "context" => Some(IgnoreReason::NotHere),
        () if !trusted && definition.needs_trust => Some(IgnoreReason::Untrusted),
        () => None,
    };
    Ok(Some(Candidate { value, origin, ignored }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn file(layer: Layer, text: &str, trusted: bool) -> SettingSource {
        let document = Document::parse(Path::new("config.toml"), text.to_owned()).unwrap();
        SettingSource::File { layer, name: None, document: Rc::new(document), within: vec![], trusted }
    }

    fn stack(sources: Vec<SettingSource>) -> Stack {
        Stack::new(&App::new("demo"), sources)
    }

    #[test]
    fn an_untrusted_file_may_say_how_but_not_what() {
        let stack = stack(vec![
            file(Layer::Directory, "context = \"prod\"\noutput = \"json\"", false),
            file(Layer::User, "context = \"dev\"", true),
        ]);
        assert_eq!(stack.get("context").unwrap().unwrap().value, Value::Text("dev".into()));
        assert_eq!(stack.get("output").unwrap().unwrap().value, Value::Text("json".into()));
        assert_eq!(stack.untrusted().len(), 1);
    }

    #[test]
    fn unknown_keys_are_found_with_their_nearest_and_their_line() {
        let stack = stack(vec![file(Layer::User, "\nlock-timout = \"5s\"\n", true)]);
        let (unknown, more) = stack.unknown(1);
        assert_eq!(more, 0);
        assert_eq!(unknown[0].near.as_deref(), Some("lock-timeout"));
        assert_eq!(unknown[0].place.line, 2);
    }

    #[test]
    fn token_is_allowed_in_a_config_file_only() {
        let error = stack(vec![file(Layer::User, "token = \"abc\"", true)]).get("token").unwrap_err();
        assert!(matches!(error, Error::Usage(UsageError::SecretRefused { .. })));
        let token = stack(vec![file(Layer::File, "token = \"abc\"", true)]).get("token").unwrap().unwrap();
        assert!(
            !format!("{token:?} {} {}", token.value, serde_json::to_string(&token).unwrap()).contains("abc")
        );
    }

    proptest! {
        /// Whatever subset of layers says a key, the strongest of them wins and all others are shadowed in order.
        #[test]
        fn the_strongest_layer_that_speaks_wins(speaks in prop::collection::vec(any::<bool>(), 5)) {
            let layers = [Layer::Directory, Layer::Context, Layer::File, Layer::User, Layer::System];
            let sources = layers.iter().zip(&speaks).map(|(layer, speaks)| {
                let text = if *speaks { format!("expect-context = \"{}\"", layer.as_str()) } else { String::new() };
                file(*layer, &text, true)
            });
            let candidates = stack(sources.collect()).explain(&SettingKey::new(["expect-context"])).unwrap();
            let expected: Vec<_> =
                layers.iter().zip(&speaks).filter(|(_, speaks)| **speaks).map(|(layer, _)| *layer).collect();
            let found: Vec<_> = candidates.iter().map(|candidate| candidate.origin.layer).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
