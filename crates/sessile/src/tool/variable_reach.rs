//! Variables that reach a target: by its name, by its address, by its key, or by their own name.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::secrets::looks_secret;
use crate::settings::trust::fingerprint;
use crate::tool::bind::filled;
use crate::tool::profile::{Profile, ReachVariables};
use crate::tool::protection::GuardedTarget;
use crate::tool::seed::is_variable_like;
use crate::tool::target::{IdentityField, TargetSet, normalized_value};

/// Variables that reach one target, as the plan of a room stores them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VariableReach {
    /// Variables that select the target, each with the value that does.
    selects: Vec<(String, String)>,
    /// Patterns of variables whose names contain that of the target, as [`plain_name`] spells them.
    named: Vec<String>,
    /// Alternative sets of fields that identify the target. The first field must be set; a missing one matches.
    fields: Vec<Vec<FieldVariables>>,
    /// Variables that lead to files of the user with the target.
    files: Vec<String>,
    /// Whether the name is an address, which has several spellings.
    is_address: bool,
}

/// Variables that give a field of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FieldVariables {
    patterns: Vec<String>,
    /// Fingerprints of the values, because some are secrets.
    values: BTreeSet<String>,
    is_secret: bool,
}

/// A variable that reaches a target.
pub(crate) struct ReachingVariable<'v> {
    pub(crate) name: &'v str,
    /// Whether it gives the address or the key, so that variables beside it belong to the same login.
    pub(crate) is_login: bool,
}

impl VariableReach {
    /// The variables that reach a target of a profile, with those of the tools that reach it too.
    pub(crate) fn of(profile: &Profile, target: &GuardedTarget, others: &[&ReachVariables]) -> Self {
        let set = profile.targets.iter().find(|set| set.name == target.key);
        let binding = profile.binding(&target.key);
        let mut reach = VariableReach {
            is_address: set.is_some_and(TargetSet::has_urls) || binding.is_some_and(|bound| bound.protects),
            ..VariableReach::default()
        };
        let bound = binding.into_iter().flat_map(|binding| &binding.variables);
        let select =
            |name: &String, template: &str| (name.clone(), filled(template, &target.name, &target.said));
        // A template without a place for the name selects nothing by it.
        reach.selects.extend(
            bound.filter(|(_, text)| text.contains("{value}")).map(|(name, text)| select(name, text)),
        );
        let own = set.into_iter().map(|set| &set.variables);
        for variables in own.chain(others.iter().copied()) {
            reach.selects.extend(variables.selects.iter().map(|name| (name.clone(), target.name.clone())));
            reach.files.extend(variables.files.iter().cloned());
            let names = [Some(target.name.clone()), without_usual_port(&target.name)];
            let patterns = |name: &String| -> Vec<String> {
                variables.named.iter().map(|pattern| plain_pattern(pattern, name)).collect()
            };
            reach.named.extend(names.iter().flatten().flat_map(patterns));
            let given = |field: &String| {
                let patterns = &variables.fields.iter().find(|(name, _)| name == field)?.1;
                let values = &target.fields.iter().find(|(name, _)| name == field)?.1;
                Some(FieldVariables {
                    patterns: patterns.clone(),
                    values: values.clone(),
                    is_secret: looks_secret(field.rsplit(['.', ':']).next().unwrap_or(field)),
                })
            };
            let tuples = set.into_iter().flat_map(|set| &set.identity);
            for tuple in tuples {
                let tuple: Vec<String> =
                    tuple.iter().map(|field| IdentityField::parse(field).name.to_owned()).collect();
                // A field that completes an identity comes first once, because the first one must be set.
                let completing = tuple.iter().skip(1).filter(|field| variables.completes.contains(field));
                for first in tuple.iter().take(1).chain(completing) {
                    let ordered = [first].into_iter().chain(tuple.iter().filter(|field| *field != first));
                    let fields: Vec<FieldVariables> = ordered.filter_map(given).collect();
                    if !fields.is_empty() {
                        reach.fields.push(fields);
                    }
                }
            }
        }
        reach.fields.dedup();
        reach
    }

    /// The variables among these that reach the target, of a name or an alias.
    pub(crate) fn find<'v>(
        &self,
        own: &'v [(String, String)],
        name: &str,
        aliases: &[String],
    ) -> Vec<ReachingVariable<'v>> {
        let mut found: Vec<ReachingVariable<'v>> = Vec::new();
        for (variable, value) in own {
            let is_selecting = self.selects.iter().any(|(pattern, wanted)| {
                let means = |one: &str| value == one || self.is_address && is_address_of(value, one);
                is_variable_like(pattern, variable)
                    && (means(wanted) || wanted == name && aliases.iter().any(|alias| means(alias)))
            });
            let plain = plain_name(variable);
            let is_named = self.named.iter().any(|pattern| is_variable_like(pattern, &plain));
            let is_file = self.files.iter().any(|pattern| is_variable_like(pattern, variable));
            if is_selecting || is_named || is_file {
                found.push(ReachingVariable { name: variable, is_login: is_selecting && self.is_address });
            }
        }
        for fields in &self.fields {
            let names = given_by(fields, own);
            found.extend(names.into_iter().map(|name| ReachingVariable { name, is_login: true }));
        }
        found
    }

    /// Whether a value is the address of a target of this name.
    pub(crate) fn is_address(&self, value: &str, name: &str) -> bool {
        self.is_address && is_address_of(value, name)
    }
}

/// The variables that give a target by these fields; none if they give another one.
fn given_by<'v>(fields: &[FieldVariables], own: &'v [(String, String)]) -> Vec<&'v str> {
    let set = |field: &FieldVariables, is_exact: bool| -> Vec<(&'v str, bool)> {
        let patterns = || field.patterns.iter().filter(|pattern| !is_exact || !pattern.contains('*'));
        let is_meant = |name: &str| patterns().any(|pattern| is_variable_like(pattern, name));
        let all = own.iter().filter(|(name, _)| is_meant(name));
        let agrees =
            |value: &str| variable_forms(value).iter().any(|form| field.values.contains(&fingerprint(form)));
        all.map(|(name, value)| (name.as_str(), agrees(value))).collect()
    };
    let agreeing = |field: &FieldVariables, is_exact: bool| -> Vec<&'v str> {
        set(field, is_exact).into_iter().filter(|(_, agrees)| *agrees).map(|(name, _)| name).collect()
    };
    // A key is enough, whatever address is beside it.
    let mut found: Vec<&str> =
        fields.iter().filter(|field| field.is_secret).flat_map(|field| agreeing(field, false)).collect();
    let mut places = fields.iter().filter(|field| !field.is_secret);
    let Some(first) = places.next() else { return found };
    // Variables with the name of an entry in theirs belong to that entry, not to the others that are set.
    let is_exact = |name: &&str| first.patterns.iter().any(|pattern| pattern == name);
    let (exact, others): (Vec<&str>, Vec<&str>) = agreeing(first, false).into_iter().partition(is_exact);
    found.extend(others);
    let rest: Vec<&FieldVariables> = places.collect();
    let disagrees = |field: &&FieldVariables| {
        let set = set(field, true);
        !set.is_empty() && set.iter().all(|(_, agrees)| !agrees)
    };
    if !exact.is_empty() && !rest.iter().any(disagrees) {
        found.extend(exact);
        found.extend(rest.iter().flat_map(|field| agreeing(field, true)));
    }
    found
}

/// Spellings of the value of a field. An address without a port counts with that of https too.
pub(crate) fn field_forms(value: &str) -> BTreeSet<String> {
    let value = value.trim().to_lowercase();
    if value.contains("://") {
        return BTreeSet::from([normalized_value(&value)]);
    }
    // An account is not an address, although a URL can begin with one.
    if value.contains('@') {
        return BTreeSet::from([value]);
    }
    let address = normalized_value(&format!("https://{value}"));
    BTreeSet::from([value, address])
}

/// Spellings that the words of a variable have as values of fields.
fn variable_forms(value: &str) -> BTreeSet<String> {
    let value = value.trim().to_lowercase();
    let mut forms = BTreeSet::from([value.clone()]);
    // A password may hold the signs between words.
    if value.contains("://") {
        forms.extend(field_forms(&value));
    }
    // Options and lists of hosts hold several values.
    for word in value.split(|c: char| c.is_whitespace() || ",=&?".contains(c)).filter(|word| !word.is_empty())
    {
        forms.extend(field_forms(word));
        // Data source names of Go have the protocol before the address: me:x@tcp(p.example:3306)/d.
        let in_brackets = || word.split_once("@tcp(").map(|(_, rest)| rest.split(')').next().unwrap_or(rest));
        let Some(rest) = word.split_once("://").map(|(_, rest)| rest).or_else(in_brackets) else { continue };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let is_port = |port: &str| port.bytes().all(|c| c.is_ascii_digit());
        let host = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(host, _)| host);
        forms.insert(host.to_owned());
    }
    forms
}

/// Whether a value is an address, or one below it.
fn is_address_of(value: &str, address: &str) -> bool {
    let forms = variable_forms(value);
    field_forms(address).iter().any(|address| {
        let is_below = |form: &String| form.strip_prefix(address).is_some_and(|rest| rest.starts_with('/'));
        forms.iter().any(|form| form == address || is_below(form))
    })
}

/// An address without the port that its scheme has anyway.
fn without_usual_port(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let port = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
    Some(format!("{scheme}://{}{path}", host.strip_suffix(port)?))
}

/// A pattern with the name of a target in it, as names of variables are compared.
fn plain_pattern(pattern: &str, name: &str) -> String {
    let name = name.split_once("://").map_or(name, |(_, rest)| rest).trim_end_matches('/');
    let filled = pattern.replace("{}", name);
    filled.split('*').map(plain_name).collect::<Vec<_>>().join("*")
}

/// A name in capitals with one `_` for every run of other signs: tools write the names of targets in variables like that,
/// each in its own way.
fn plain_name(name: &str) -> String {
    let mut plain = String::new();
    for c in name.chars() {
        match c.is_ascii_alphanumeric() {
            true => plain.push(c.to_ascii_uppercase()),
            false if plain.ends_with('_') => {}
            false => plain.push('_'),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_has_several_spellings() {
        for (value, address) in [
            ("p.example", "https://p.example"),
            ("https://P.example/", "p.example"),
            ("p.example:443", "p.example"),
            ("postgres://u:x@p.example:5432/d", "p.example"),
            ("jdbc:postgresql://p.example:5432/d?user=u", "p.example"),
            ("u:x@tcp(p.example:3306)/d?tls=true", "p.example"),
            ("--server=p.example --grpc-web", "p.example"),
            ("https://r.example/prod/sub/", "https://r.example/prod"),
            ("https://localhost:6443", "https://127.0.0.1:6443/"),
        ] {
            assert!(is_address_of(value, address), "{value} {address}");
        }
        for (value, address) in [
            ("https://p.example:6443", "https://p.example:7443"),
            ("https://r.example/production", "https://r.example/prod"),
            ("s.example", "p.example"),
            ("xp.example", "p.example"),
            ("me@p.example", "admin@p.example"),
        ] {
            assert!(!is_address_of(value, address), "{value} {address}");
        }
    }

    #[test]
    fn name_of_a_target_is_found_in_the_name_of_a_variable() {
        for (pattern, target, variable) in [
            ("RCLONE_CONFIG_{}_*", "my-remote", "RCLONE_CONFIG_MY_REMOTE_TYPE"),
            ("TF_TOKEN_{}", "tfe.prod-1.example", "TF_TOKEN_tfe_prod__1_example"),
            ("npm_config_//{}/*", "https://r.example/prod/", "NPM_CONFIG_//r.example/prod/:_authToken"),
        ] {
            assert!(is_variable_like(&plain_pattern(pattern, target), &plain_name(variable)), "{variable}");
        }
        let pattern = plain_pattern("RCLONE_CONFIG_{}_*", "prod");
        assert!(!is_variable_like(&pattern, &plain_name("RCLONE_CONFIG_DEV_TYPE")));
    }
}
