//! Grouping of targets into proposed contexts: targets of several tools whose names speak of the same environment.
//!
//! A name is split into words. One of them may name an environment (`prod`, `prd` and `live` are production); the others
//! tell targets of one environment apart, such as regions. Where each tool has one target for an environment, these belong
//! together whatever else their names say. Where a tool has several, each is a context of its own, with the targets of
//! other tools that share the most of its words, or that stand alone.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::context::Guard;
use crate::import::{FoundVariables, ProposedVariable, Scan};

/// A target that a tool has, as a context would bind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundTarget {
    /// Tool.
    pub tool: String,
    /// Key of the binding.
    pub key: String,
    /// Name of the target: the value of the binding.
    pub name: String,
    /// Bindings that belong to it, such as the host of an account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<(String, String)>,
    /// The user's own name of it, if the value says less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether it joins contexts of other targets, and makes none by itself.
    #[serde(skip)]
    pub joins: bool,
    /// Whether the tool uses it where nothing is selected.
    #[serde(skip)]
    pub is_default: bool,
    /// Whether the user selected it lately.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recent: bool,
}

impl FoundTarget {
    pub(super) fn new(tool: &str, key: &str, name: String) -> Self {
        FoundTarget {
            tool: tool.to_owned(),
            key: key.to_owned(),
            name,
            beside: Vec::new(),
            label: None,
            joins: false,
            is_default: false,
            recent: false,
        }
    }

    /// Whether both are the same value of the same binding.
    pub(super) fn is_same(&self, other: &FoundTarget) -> bool {
        (&self.tool, &self.key, &self.name) == (&other.tool, &other.key, &other.name)
    }
}

/// A context that the import proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProposedContext {
    /// Name.
    pub name: String,
    /// Guard: `approval` for what looks like production.
    pub guard: Guard,
    /// Bindings, one target for a tool.
    pub targets: Vec<FoundTarget>,
    /// Variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, ProposedVariable)>,
}

impl ProposedContext {
    fn new(name: &str, guard: Guard, targets: Vec<FoundTarget>) -> Self {
        ProposedContext { name: name.to_owned(), guard, targets, env: Vec::new() }
    }
}

/// Environments, and the words that name them. The first of an environment is its name.
const ENVIRONMENTS: &[&[&str]] = &[
    &["production", "prod", "prd", "live"],
    &["staging", "stage", "stg", "preprod", "preproduction", "preview"],
    &["dev", "develop", "development", "nonprod", "nonproduction"],
    &["test", "testing", "tst", "qa", "uat"],
    &["sandbox", "sbx"],
    &["local", "localhost"],
];

/// Contexts for everything that a scan has found.
pub fn propose_all(scan: &Scan) -> Vec<ProposedContext> {
    let mut proposed = propose(&scan.targets);
    for found in scan.variables.iter().filter(|found| !found.variables.is_empty()) {
        let has_target = |context: &ProposedContext| {
            context.targets.iter().any(|target| found.targets.iter().any(|one| one.is_same(target)))
        };
        let mut with_targets = proposed.iter_mut().filter(|context| has_target(context));
        match (with_targets.next(), with_targets.next()) {
            // The directory's variables belong to what it selects, if that is one thing.
            (Some(only), None) => only.env.extend(found.variables.clone()),
            _ => proposed.extend(of_directory(found)),
        }
    }
    make_unique(&mut proposed);
    proposed
}

/// A context for the variables of a directory, named after it.
fn of_directory(found: &FoundVariables) -> Option<ProposedContext> {
    let dir = found.file.parent()?.file_name()?.to_string_lossy().into_owned();
    let words = words(&dir);
    let guard =
        if words.iter().any(|word| environment(word) == Some(0)) { Guard::Approval } else { Guard::None };
    let name = words.join("-");
    let env = found.variables.clone();
    (!name.is_empty()).then(|| ProposedContext { env, ..ProposedContext::new(&name, guard, Vec::new()) })
}

/// Groups targets into contexts, in the order of the environments and then by name.
pub fn propose(found: &[FoundTarget]) -> Vec<ProposedContext> {
    let mut environments: BTreeMap<usize, Vec<NamedTarget<'_>>> = BTreeMap::new();
    let mut others: BTreeMap<String, Vec<FoundTarget>> = BTreeMap::new();
    // What a tool uses without any selection needs no context.
    for target in found.iter().filter(|target| !target.is_default) {
        let words = words_of(target);
        match words.iter().find_map(|word| environment(word)) {
            Some(environment) => {
                let rest = words.into_iter().filter(|word| self::environment(word).is_none()).collect();
                environments.entry(environment).or_default().push(NamedTarget { target, rest });
            }
            None => others.entry(words.join("-")).or_default().push(target.clone()),
        }
    }
    let mut proposed = Vec::new();
    for (environment, targets) in environments {
        proposed.extend(of_environment(environment, &targets));
    }
    let stands = |targets: &[FoundTarget]| targets.iter().any(|target| !target.joins);
    let others = others.into_iter().filter(|(name, targets)| !name.is_empty() && stands(targets));
    proposed.extend(others.flat_map(|(name, targets)| split_by_tool(&name, Guard::None, targets)));
    make_unique(&mut proposed);
    proposed
}

/// The targets that no context is proposed for, because their names have no letter or digit that a context's name can have.
pub fn unnamed(found: &[FoundTarget]) -> Vec<&FoundTarget> {
    let is_unnamed =
        |target: &&FoundTarget| !target.is_default && !target.joins && words_of(target).is_empty();
    found.iter().filter(is_unnamed).collect()
}

fn words_of(target: &FoundTarget) -> Vec<String> {
    words(target.label.as_ref().unwrap_or(&target.name))
}

/// A target, and the words of its name that do not name its environment.
struct NamedTarget<'a> {
    target: &'a FoundTarget,
    rest: Vec<String>,
}

fn of_environment(environment: usize, targets: &[NamedTarget<'_>]) -> Vec<ProposedContext> {
    let name = ENVIRONMENTS.get(environment).and_then(|words| words.first()).copied().unwrap_or_default();
    // Production is the first of the list, and the only one that is guarded without being asked.
    let guard = if environment == 0 { Guard::Approval } else { Guard::None };
    let mut by_tool: BTreeMap<&str, Vec<&NamedTarget<'_>>> = BTreeMap::new();
    for named in targets {
        by_tool.entry(&named.target.tool).or_default().push(named);
    }
    // Targets that only join others separate nothing: one of several would be a guess.
    by_tool.retain(|_, targets| targets.len() == 1 || targets.iter().any(|named| !named.target.joins));
    if by_tool.values().flatten().all(|named| named.target.joins) {
        return Vec::new();
    }
    let (several, single): (Vec<_>, Vec<_>) = by_tool.into_values().partition(|targets| targets.len() > 1);
    let single: Vec<&NamedTarget<'_>> = single.into_iter().flatten().collect();
    if several.is_empty() {
        let targets = single.iter().map(|named| named.target.clone()).collect();
        return vec![ProposedContext::new(name, guard, targets)];
    }
    // Targets of tools that have several are distinguished by their other words.
    let mut groups: BTreeMap<String, Vec<FoundTarget>> = BTreeMap::new();
    for named in several.into_iter().flatten() {
        groups.entry(named.rest.join("-")).or_default().push(named.target.clone());
    }
    let mut proposed = Vec::new();
    for (rest, mut targets) in groups {
        let own: Vec<&str> = rest.split('-').collect();
        let joins = |named: &&&NamedTarget<'_>| {
            named.rest.is_empty() || named.rest.iter().any(|word| own.contains(&word.as_str()))
        };
        targets.extend(single.iter().filter(joins).map(|named| named.target.clone()));
        let name = if rest.is_empty() { name.to_owned() } else { format!("{name}-{rest}") };
        proposed.extend(split_by_tool(&name, guard, targets));
    }
    let is_used =
        |named: &NamedTarget<'_>| proposed.iter().any(|context| context.targets.contains(named.target));
    let left: Vec<FoundTarget> =
        single.iter().filter(|named| !is_used(named)).map(|named| named.target.clone()).collect();
    // The environment itself takes the rest, because no other word separates its targets from them.
    if let Some(plain) = proposed.iter_mut().find(|context| context.name == name) {
        plain.targets.extend(left);
    } else if left.iter().any(|target| !target.joins) {
        proposed.push(ProposedContext::new(name, guard, left));
    }
    proposed
}

/// Contexts with at most one target of a binding each: a second one of the same words is a context of its own.
fn split_by_tool(name: &str, guard: Guard, targets: Vec<FoundTarget>) -> Vec<ProposedContext> {
    let mut contexts: Vec<ProposedContext> = Vec::new();
    for target in targets {
        let is_free = |context: &&mut ProposedContext| {
            !context.targets.iter().any(|other| (&other.tool, &other.key) == (&target.tool, &target.key))
        };
        match contexts.iter_mut().find(is_free) {
            Some(context) => context.targets.push(target),
            None => contexts.push(ProposedContext::new(name, guard, vec![target])),
        }
    }
    contexts
}

/// Gives contexts of one name numbers.
fn make_unique(proposed: &mut [ProposedContext]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for context in proposed {
        let count = seen.entry(context.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            context.name = format!("{}-{count}", context.name);
        }
    }
}

/// The index of the environment that a word names.
fn environment(word: &str) -> Option<usize> {
    // A number at the end counts instances: prod1, stg02.
    let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
    ENVIRONMENTS.iter().position(|words| words.contains(&word))
}

/// Words of a target's name in lower case, split at all characters except letters and digits.
fn words(name: &str) -> Vec<String> {
    let name = name.split_once("://").map_or(name, |(_, rest)| rest);
    let mut words: Vec<String> = Vec::new();
    for word in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = word.to_ascii_lowercase();
        match words.last_mut() {
            // pre-prod and non-prod are one word each, and not production.
            Some(before) if ["pre", "non"].contains(&before.as_str()) => before.push_str(&word),
            _ => words.push(word),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{FoundTarget, ProposedContext, propose, unnamed};
    use crate::context::Guard;

    fn target(tool: &str, name: &str) -> FoundTarget {
        FoundTarget::new(tool, "context", name.into())
    }

    #[test]
    fn targets_that_join_separate_nothing_and_make_no_context() {
        let host = |name: &str| FoundTarget { joins: true, ..target("ssh", name) };
        let found = [target("kube", "prod"), host("prod-web-1"), host("prod-web-2"), host("bastion")];
        assert_eq!(shown(&propose(&found)), ["production: kube=prod"]);
        let found = [target("kube", "staging"), host("stg-web"), host("prod-db")];
        assert_eq!(shown(&propose(&found)), ["staging: kube=staging ssh=stg-web"]);
    }

    #[test]
    fn label_groups_where_the_value_says_less() {
        let mail = FoundTarget { label: Some("~/work/".into()), ..target("git", "bob@corp.example") };
        assert_eq!(
            shown(&propose(&[mail, target("kube", "work")])),
            ["work: git=bob@corp.example kube=work"]
        );
    }

    /// Names, and what each binds.
    fn shown(proposed: &[ProposedContext]) -> Vec<String> {
        let line = |context: &ProposedContext| {
            let targets = context.targets.iter().map(|target| format!(" {}={}", target.tool, target.name));
            format!("{}:{}", context.name, targets.collect::<String>())
        };
        proposed.iter().map(line).collect()
    }

    #[test]
    fn words_for_one_environment_belong_together() {
        let found = [
            target("kube", "gke_corp_europe-west1_prod"),
            target("aws", "prd-admin"),
            target("docker", "live"),
            target("kube", "stg"),
            target("aws", "Staging"),
        ];
        let proposed = propose(&found);
        assert_eq!(
            shown(&proposed),
            [
                "production: aws=prd-admin docker=live kube=gke_corp_europe-west1_prod",
                "staging: aws=Staging kube=stg"
            ]
        );
        assert_eq!(proposed[0].guard, Guard::Approval);
        assert_eq!(proposed[1].guard, Guard::None);
    }

    #[test]
    fn several_targets_of_one_tool_are_several_contexts() {
        let found = [
            target("kube", "prod-eu"),
            target("kube", "prod-us"),
            target("aws", "prod"),
            target("cloud", "prod-us-main"),
        ];
        assert_eq!(
            shown(&propose(&found)),
            [
                "production-eu: kube=prod-eu aws=prod",
                "production-us: kube=prod-us aws=prod cloud=prod-us-main"
            ]
        );
    }

    #[test]
    fn targets_of_other_words_belong_to_the_environment_itself() {
        let host = FoundTarget { joins: true, ..target("ssh", "prod-web") };
        let kube = [target("kube", "production"), target("kube", "prod-eu")];
        let found = [&kube[..], &[host.clone(), target("aws", "prod-admin")]].concat();
        assert_eq!(
            shown(&propose(&found)),
            ["production: kube=production aws=prod-admin ssh=prod-web", "production-eu: kube=prod-eu"]
        );
        // Without such a context, a target that only joins others makes none.
        let kube = [target("kube", "prod-us"), target("kube", "prod-eu")];
        let found = [&kube[..], &[host]].concat();
        assert_eq!(shown(&propose(&found)), ["production-eu: kube=prod-eu", "production-us: kube=prod-us"]);
    }

    #[test]
    fn names_without_an_environment_are_matched_whole() {
        let found =
            [target("kube", "acme"), target("aws", "Acme"), target("gh", "bob"), target("kube", "acme_")];
        let proposed = propose(&found);
        assert_eq!(shown(&proposed), ["acme: kube=acme aws=Acme", "acme-2: kube=acme_", "bob: gh=bob"]);
    }

    #[test]
    fn target_that_a_tool_uses_without_a_selection_makes_no_context() {
        let own = FoundTarget { is_default: true, ..target("aws", "default") };
        assert_eq!(shown(&propose(&[own, target("kube", "default")])), ["default: kube=default"]);
    }

    #[test]
    fn target_without_a_name_for_a_context_is_listed() {
        let found = [target("kube", "\u{43f}\u{440}\u{43e}\u{434}"), target("kube", "dev")];
        assert_eq!(shown(&propose(&found)), ["dev: kube=dev"]);
        assert_eq!(unnamed(&found), [&found[0]]);
    }

    #[test]
    fn words_inside_other_words_name_nothing() {
        let proposed = propose(&[target("kube", "product-team"), target("kube", "alive")]);
        assert!(proposed.iter().all(|context| context.guard == Guard::None), "{proposed:?}");
    }

    #[test]
    fn pre_production_is_not_production() {
        for name in ["pre-prod", "preprod", "non-prod", "nonprod"] {
            let proposed = propose(&[target("kube", name)]);
            assert_eq!(proposed[0].guard, Guard::None, "{name}");
        }
    }
}
