//! Findings of the import beside targets: agents, conversations, credentials in clear text, and variables of a directory.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::error::Result;
use crate::import::places::{ImportPlaces, PlacedEntry};
use crate::import::{FoundTarget, Scan};
use crate::names::CredentialName;
use crate::secrets::is_secret;
use crate::site::agent_url;
use crate::state::State;
use crate::tool::{ImportPlace, ImportedThing, Profile, TargetFormat};
use crate::vault::{CredentialKind, Secret, name_for_agent, name_of};

/// An A2A agent that a tool knows by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundAgent {
    /// Tool.
    pub tool: String,
    /// Name.
    pub name: String,
    /// URL.
    pub url: String,
}

/// A conversation that a tool remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundConversation {
    /// Tool.
    pub tool: String,
    /// URL of the agent.
    pub url: String,
    /// The agent's id of it.
    pub context_id: String,
    /// Task that it was last about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
}

/// A secret in clear text.
#[derive(Clone, Debug, Serialize)]
pub struct FoundCredential {
    /// Tool.
    pub tool: String,
    /// Proposed name of the credential.
    pub name: CredentialName,
    /// Kind.
    #[serde(flatten)]
    pub kind: CredentialKind,
    /// File that holds it.
    pub file: PathBuf,
    /// URL of the agent that gets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip)]
    pub(super) secret: Secret,
}

/// The variables of a directory.
#[derive(Clone, Debug, Serialize)]
pub struct FoundVariables {
    /// File that sets them.
    pub file: PathBuf,
    /// Variables, each with its value.
    pub variables: Vec<(String, ProposedVariable)>,
    /// Targets that they select.
    pub targets: Vec<FoundTarget>,
}

/// Value of a variable of a proposed context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ProposedVariable {
    /// Text.
    Plain(String),
    /// The credential that was found in its place.
    Credential {
        /// Name.
        credential: CredentialName,
    },
}

/// Reads the places that a profile names for the import.
pub(super) fn read(state: &State, profiles: &[Profile], profile: &Profile, scan: &mut Scan) -> Result<()> {
    let places = ImportPlaces::of(state);
    for place in &profile.imports {
        for mut found in places.entries(profile, place)? {
            let reading = Reading { places: &places, place, profile };
            match &place.what {
                ImportedThing::Target(key) => reading.targets(key, &mut found, &mut scan.targets),
                ImportedThing::Recent(key) => {
                    let name = found.entry.name().to_owned();
                    let is_meant = |target: &&mut FoundTarget| {
                        target.tool == profile.name && target.key == *key && target.name == name
                    };
                    scan.targets.iter_mut().filter(is_meant).for_each(|target| target.recent = true);
                }
                ImportedThing::Agent => scan.agents.extend(reading.agent(&mut found)),
                ImportedThing::Conversation => {
                    let new = reading.conversation(&mut found);
                    let new = new.filter(|new| !scan.conversations.contains(new));
                    scan.conversations.extend(new);
                }
                ImportedThing::Credential(kind) => {
                    let new = reading.credential(kind, &mut found);
                    // One secret can stand in several files of a tool.
                    let is_new = |new: &FoundCredential| {
                        let is_same = |one: &FoundCredential| {
                            one.secret == new.secret && one.kind == new.kind && one.agent == new.agent
                        };
                        !scan.credentials.iter().any(is_same)
                    };
                    scan.credentials.extend(new.filter(is_new));
                }
                ImportedThing::Variable => reading.variable(profiles, &found, scan),
            }
        }
    }
    Ok(())
}

struct Reading<'a> {
    places: &'a ImportPlaces<'a>,
    place: &'a ImportPlace,
    profile: &'a Profile,
}

impl Reading<'_> {
    fn part(&self, found: &mut PlacedEntry, part: &str) -> Option<String> {
        self.places.part(self.place, found, part)
    }

    fn targets(&self, key: &str, found: &mut PlacedEntry, targets: &mut Vec<FoundTarget>) {
        let fields: Vec<&String> = self.place.fields.iter().map(|(part, _)| part).collect();
        let has_value = fields.iter().any(|part| *part == key);
        let name = found.entry.name().to_owned();
        let values: Vec<String> = if has_value {
            self.part(found, key).into_iter().collect()
        } else if self.place.place.format == TargetFormat::Lines {
            // A line may name several; a pattern is not a target.
            let words = name.split_whitespace().filter(|word| !word.contains(['*', '?', '!']));
            words.map(str::to_owned).collect()
        } else {
            vec![name.clone()]
        };
        let beside: Vec<(String, String)> = fields
            .into_iter()
            .filter(|part| *part != key)
            .filter_map(|part| Some((part.clone(), self.part(found, part)?)))
            .collect();
        for value in values.into_iter().filter(|value| !value.is_empty()) {
            let is_known = |target: &FoundTarget| {
                target.tool == self.profile.name && target.key == key && target.name == value
            };
            if !targets.iter().any(is_known) {
                targets.push(FoundTarget {
                    label: has_value.then(|| name.clone()),
                    beside: beside.clone(),
                    joins: self.place.joins,
                    ..FoundTarget::new(&self.profile.name, key, value)
                });
            }
        }
    }

    fn agent(&self, found: &mut PlacedEntry) -> Option<FoundAgent> {
        let url = agent_url(&self.part(found, "url")?).ok()?;
        let name = self.part(found, "name").unwrap_or_else(|| found.entry.name().to_owned());
        // Names of other tools may have characters that a setting's cannot.
        crate::names::agent_name(&name).ok()?;
        Some(FoundAgent { tool: self.profile.name.clone(), name, url })
    }

    fn conversation(&self, found: &mut PlacedEntry) -> Option<FoundConversation> {
        let url = agent_url(&self.part(found, "url")?).ok()?;
        let context_id = self.part(found, "context-id")?;
        let task_id = self.part(found, "task-id");
        Some(FoundConversation { tool: self.profile.name.clone(), url, context_id, task_id })
    }

    fn credential(&self, kind: &str, found: &mut PlacedEntry) -> Option<FoundCredential> {
        let login = self.part(found, "basic").and_then(|encoded| basic_login(&encoded));
        let (username, secret) = match login {
            Some((username, secret)) => (Some(username), Some(secret)),
            None => (self.part(found, "username"), self.part(found, "secret").map(Secret::new)),
        };
        // A reference to a variable is not a secret.
        let secret = secret.filter(|one| !one.expose().is_empty() && !one.expose().contains("${"))?;
        let kind = match kind {
            "api-key" => {
                let header = self.part(found, "header").unwrap_or_else(|| "X-API-Key".to_owned());
                CredentialKind::ApiKey { header }
            }
            "basic" => CredentialKind::Basic { username: username? },
            _ => CredentialKind::Bearer,
        };
        let agent = self.part(found, "url").and_then(|url| agent_url(&url).ok());
        let name = match &agent {
            Some(url) => name_for_agent(url).ok()?,
            None => {
                let holder = found.holder.iter().map(String::as_str);
                let words =
                    [self.profile.name.as_str()].into_iter().chain(holder).chain([found.entry.name()]);
                name_of(&words.collect::<Vec<_>>().join("-")).ok()?
            }
        };
        let (tool, file) = (self.profile.name.clone(), found.file.clone());
        Some(FoundCredential { tool, name, kind, file, agent, secret })
    }

    /// A variable of a directory: the target that a binding selects with it, a secret, or a variable of the context.
    fn variable(&self, profiles: &[Profile], found: &PlacedEntry, scan: &mut Scan) {
        let mut found = PlacedEntry { file: found.file.clone(), holder: None, entry: found.entry.clone() };
        let name = found.entry.name().to_owned();
        let Some(value) = self.part(&mut found, "value") else { return };
        // Expansions of the shell are unknown here.
        if !crate::context::is_variable_name(&name) || value.is_empty() || value.contains(['$', '`', '\\']) {
            return;
        }
        let at = scan.variables.iter().position(|one| one.file == found.file).unwrap_or_else(|| {
            let (variables, targets) = (Vec::new(), Vec::new());
            scan.variables.push(FoundVariables { file: found.file.clone(), variables, targets });
            scan.variables.len() - 1
        });
        let Some(of_file) = scan.variables.get_mut(at) else { return };
        if let Some((tool, key)) = bound_by(profiles, &name) {
            let target = FoundTarget::new(tool, key, value);
            let is_known = |one: &FoundTarget| one.is_same(&target);
            if !of_file.targets.iter().any(is_known) {
                of_file.targets.push(target.clone());
            }
            if !scan.targets.iter().any(is_known) {
                scan.targets.push(target);
            }
        } else if is_moved(profiles, &name) {
            // Rooms set it.
        } else if is_secret(&name, &value) {
            let dir = found.file.parent().and_then(|dir| dir.file_name()).unwrap_or_default();
            let words = format!("{}-{}", dir.to_string_lossy(), name.to_ascii_lowercase());
            let Ok(credential) = name_of(&words) else { return };
            scan.credentials.push(FoundCredential {
                tool: self.profile.name.clone(),
                name: credential.clone(),
                kind: CredentialKind::Bearer,
                file: found.file.clone(),
                agent: None,
                secret: Secret::new(value),
            });
            of_file.variables.push((name, ProposedVariable::Credential { credential }));
        } else {
            of_file.variables.push((name, ProposedVariable::Plain(value)));
        }
    }
}

/// Username and secret of a login as HTTP Basic encodes it.
fn basic_login(encoded: &str) -> Option<(String, Secret)> {
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (username, secret) = text.split_once(':')?;
    Some((username.to_owned(), Secret::new(secret.to_owned())))
}

/// The binding that sets a variable to its value.
fn bound_by<'p>(profiles: &'p [Profile], name: &str) -> Option<(&'p str, &'p str)> {
    profiles.iter().find_map(|profile| {
        let sets = |(_, binding): &&(String, crate::tool::Binding)| {
            binding.variables.iter().any(|(variable, text)| variable == name && text == "{value}")
        };
        profile.bind.iter().find(sets).map(|(key, _)| (profile.name.as_str(), key.as_str()))
    })
}

/// Whether a profile points a variable into the room.
fn is_moved(profiles: &[Profile], name: &str) -> bool {
    profiles.iter().flat_map(|profile| &profile.variables).any(|(variable, _)| variable == name)
}
