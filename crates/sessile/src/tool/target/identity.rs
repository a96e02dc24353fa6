//! Identity of targets: what makes two entries of a tool the same, whatever their names.

use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::path::{Component, Path, PathBuf};

use crate::error::Result;
use crate::settings::trust::fingerprint;
use crate::tool::target::entries::{Entry, EntryFile};
use crate::tool::target::{FieldValues, TargetFormat, TargetPlace, TargetSet, normalized};
use crate::tool::tree::Tree;

/// Combinations of field values per entry; a file may repeat a name any number of times.
const MOST_KEYS: usize = 64;

/// Entries of a tool's sets, read from the files of their places.
pub(super) struct LoadedSets<'p> {
    pub(super) places: Vec<LoadedPlace<'p>>,
    /// Places and positions of the entries, by set and normalized name: a file may have ten thousand.
    index: HashMap<(&'p str, String), Vec<(usize, usize)>>,
}

/// Entries of one place in one file.
pub(super) struct LoadedPlace<'p> {
    pub(super) set: &'p str,
    pub(super) place: &'p TargetPlace,
    pub(super) path: PathBuf,
    pub(super) entries: Vec<Entry>,
}

impl<'p> LoadedSets<'p> {
    /// Reads the files of every place that `locate` finds.
    pub(super) fn load(
        sets: &'p [TargetSet],
        fill: &dyn Fn(&str) -> String,
        locate: &dyn Fn(&TargetPlace) -> Result<Vec<PathBuf>>,
    ) -> Result<Self> {
        let mut places = Vec::new();
        for set in sets {
            for place in &set.places {
                for path in locate(place)? {
                    let entries = EntryFile { place, path: path.clone(), fill }.load()?;
                    places.push(LoadedPlace { set: &set.name, place, path, entries });
                }
            }
        }
        let mut index: HashMap<(&str, String), Vec<(usize, usize)>> = HashMap::new();
        for (at, loaded) in places.iter().enumerate() {
            for (position, entry) in loaded.entries.iter().enumerate() {
                for name in &entry.names {
                    let key = (loaded.set, normalized(loaded.place, name));
                    index.entry(key).or_default().push((at, position));
                }
            }
        }
        Ok(LoadedSets { places, index })
    }

    /// The entries of a name, each with its place.
    fn named(&self, set: &str, name: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (at, loaded) in self.places.iter().enumerate().filter(|(_, loaded)| loaded.set == set) {
            let places = self.index.get(&(loaded.set, normalized(loaded.place, name)));
            found.extend(places.into_iter().flatten().filter(|(place, _)| *place == at));
        }
        found
    }

    /// Names of the entries that an entry refers to in another set.
    pub(super) fn references(&mut self, set: &str, name: &str, other: &str) -> Vec<String> {
        let mut names = Vec::new();
        for (at, position) in self.named(set, name) {
            let loaded = &mut self.places[at];
            let references = loaded.entries[position].references(loaded.place);
            names.extend(references.into_iter().filter(|(set, _)| set == other).map(|(_, name)| name));
        }
        names
    }

    /// Identities of an entry: one for each alternative whose fields all have a value, or may be absent. Two entries that
    /// share one are the same target. The values are hashed, because some are secrets.
    pub(super) fn identities(&mut self, set: &TargetSet, name: &str) -> Vec<String> {
        self.keys(set, &set.identity, name)
    }

    /// The same for the identities that only an entry for exactly the same target has.
    pub(super) fn exact_identities(&mut self, set: &TargetSet, name: &str) -> Vec<String> {
        self.keys(set, if set.shares.is_empty() { &set.identity } else { &set.shares }, name)
    }

    fn keys(&mut self, set: &TargetSet, alternatives: &[Vec<String>], name: &str) -> Vec<String> {
        let mut keys = Vec::new();
        for fields in alternatives {
            let mut products = vec![String::new()];
            for (at, field) in fields.iter().enumerate() {
                let field = IdentityField::parse(field);
                let values = field.known(self.elements(&set.name, name, field));
                let joined = products.iter().flat_map(|before| {
                    // A separator keeps `a` and `bc` apart from `ab` and `c`.
                    let separator = if at == 0 { "" } else { "\0" };
                    values.iter().map(move |value| format!("{before}{separator}{value}"))
                });
                products = joined.take(MOST_KEYS).collect();
            }
            keys.extend(products.iter().map(|product| fingerprint(product)));
        }
        keys.sort();
        keys.dedup();
        keys
    }

    /// Values of the fields that identify an entry.
    pub(super) fn fields(&mut self, set: &TargetSet, name: &str) -> FieldValues {
        let fields = set.identity.iter().flatten();
        let mut fields: Vec<IdentityField<'_>> = fields.map(|field| IdentityField::parse(field)).collect();
        fields.sort_unstable_by_key(|field| field.name);
        fields.dedup_by_key(|field| field.name);
        let values =
            fields.iter().map(|field| (field.name.to_owned(), self.elements(&set.name, name, *field)));
        values.collect()
    }

    /// Elements of the values that a field has in an entry.
    fn elements(&mut self, set: &str, name: &str, field: IdentityField<'_>) -> Vec<String> {
        let values: Vec<String> =
            field.alternatives().flat_map(|one| self.values(set, name, one, field)).collect();
        values.into_iter().flat_map(|value| field.elements(value)).collect()
    }

    /// Values of a field. `SET:FIELD` is a field of the entry that is referred to.
    fn values(&mut self, set: &str, name: &str, path: &str, field: IdentityField<'_>) -> Vec<String> {
        let mut values = Vec::new();
        match path.split_once(':') {
            Some((other, path)) => {
                for referred in self.references(set, name, other) {
                    values.extend(self.values(other, &referred, path, field));
                }
            }
            None => {
                for (at, position) in self.named(set, name) {
                    let loaded = &mut self.places[at];
                    let value = loaded.entries[position].value(path);
                    values.extend(value.into_iter().flat_map(|value| field.resolved(value, &loaded.path)));
                }
            }
        }
        values.sort();
        values.dedup();
        values
    }
}

/// A field of an identity or a reference: `|` separates alternatives, `,` before the name takes each element of a list; then
/// `~` ignores case, `@` compares addresses, `#` numbers, `/` paths, `!` commands; `?` after it lets it be absent, with the
/// default behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdentityField<'a> {
    pub(crate) name: &'a str,
    is_list: bool,
    comparison: Comparison,
    default: Option<&'a str>,
}

/// How values of a field are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Exact,
    AnyCase,
    Address,
    Number,
    /// Paths, which are relative to the file that names them.
    Path,
    /// Commands, which are paths if they contain a slash.
    Command,
}

impl<'a> IdentityField<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let (text, is_list) = text.strip_prefix(',').map_or((text, false), |rest| (rest, true));
        let comparison = match text.chars().next() {
            Some('~') => Comparison::AnyCase,
            Some('@') => Comparison::Address,
            Some('#') => Comparison::Number,
            Some('/') => Comparison::Path,
            Some('!') => Comparison::Command,
            _ => Comparison::Exact,
        };
        let text = if comparison == Comparison::Exact { text } else { &text[1..] };
        let (name, default) = text.split_once('?').map_or((text, None), |(name, rest)| (name, Some(rest)));
        IdentityField { name, is_list, comparison, default }
    }

    /// Whether an entry may have no value of it.
    pub(super) fn is_optional(&self) -> bool {
        self.default.is_some()
    }

    /// The values that a field of a file can mean. A path has two if it passes a link before a `..`.
    pub(super) fn resolved(&self, value: String, file: &Path) -> Vec<String> {
        let is_path = match self.comparison {
            Comparison::Path => true,
            Comparison::Command => value.contains('/'),
            _ => false,
        };
        if !is_path {
            return vec![value];
        }
        let path = file.parent().unwrap_or(Path::new("/")).join(value);
        let plain = without_parents(&path);
        let real = |path: &Path| path.canonicalize().ok();
        let mut paths = vec![real(&plain).unwrap_or(plain)];
        paths.extend(real(&path));
        paths.dedup();
        paths.into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    /// Names of the fields that it may be.
    pub(super) fn alternatives(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.name.split('|')
    }

    /// Elements of a value; a value that is not a list is its own.
    pub(super) fn elements(&self, value: String) -> Vec<String> {
        if !self.is_list {
            return vec![value];
        }
        let elements = value.split(',').map(str::trim).filter(|element| !element.is_empty());
        elements.map(str::to_owned).collect()
    }

    /// Values as they are compared; the default if the entry has none.
    pub(super) fn known(&self, values: Vec<String>) -> Vec<String> {
        let values = match self.default {
            Some(default) if values.is_empty() => vec![default.to_owned()],
            _ => values,
        };
        let plain = |value: String| match self.comparison {
            Comparison::Address => normalized_address(&value),
            Comparison::AnyCase => value.to_lowercase(),
            Comparison::Number => value.trim_start_matches('0').to_owned(),
            Comparison::Exact | Comparison::Path | Comparison::Command => value,
        };
        values.into_iter().map(plain).collect()
    }
}

impl Entry {
    /// Value of a field as it is compared. An empty field identifies nothing: all entries without it would be the same.
    pub(super) fn value(&mut self, field: &str) -> Option<String> {
        let tree = self.subtree(field).filter(|tree| !tree.is_nothing())?;
        Some(canonical(&tree)).filter(|value| !value.is_empty())
    }

    /// Its references to entries of other sets: set and name.
    pub(super) fn references(&mut self, place: &TargetPlace) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (set, field) in &place.refs {
            let field = IdentityField::parse(field);
            let texts: Vec<String> = field.alternatives().filter_map(|name| self.field(name)).collect();
            for referred in texts.into_iter().flat_map(|text| field.elements(text)) {
                // A place within an entry is written after its name and a colon.
                let prefix = referred.split_once(':').map(|(name, _)| name.to_owned());
                let prefix = prefix.filter(|_| place.format == TargetFormat::Ini);
                found.extend(prefix.into_iter().chain([referred]).map(|name| (set.clone(), name)));
            }
        }
        found
    }
}

/// Identity of a single value, such as an endpoint in a variable.
pub(crate) fn value_identity(value: &str) -> String {
    fingerprint(&normalized_value(value))
}

/// A value as text; the order of members in a map means nothing.
fn canonical(tree: &Tree) -> String {
    match tree {
        Tree::Scalar(scalar) => normalized_value(&scalar.text),
        Tree::List(elements) => {
            elements.iter().map(|element| format!("{}\u{1}", canonical(element))).collect()
        }
        Tree::Map(members) => {
            let mut members: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("{}\u{2}{}\u{3}", key.text, canonical(value)))
                .collect();
            members.sort();
            members.concat()
        }
    }
}

/// A value as it is compared: a URL without its scheme and last slash, with its port, and its host in lower case.
pub(crate) fn normalized_value(value: &str) -> String {
    let value = value.trim();
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let scheme = scheme.to_ascii_lowercase();
    let is_web = ["https", "http"].contains(&scheme.as_str());
    // Clients of an address add their own query, and drop what the address has.
    let rest = if is_web { rest.split(['?', '#']).next().unwrap_or_default() } else { rest };
    let rest = if is_web { without_codes(rest) } else { rest.to_owned() };
    let rest = rest.trim_end_matches('/');
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let path = if is_web { without_dots(path) } else { path.to_owned() };
    // The user part of a URL is not part of the server's identity.
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    // An IPv6 address has colons of its own, within brackets.
    let port_at = host.rfind(':').filter(|at| !host[*at..].contains(']'));
    let (host, port) = port_at.map_or((host.as_str(), ""), |at| (&host[..at], &host[at + 1..]));
    let port = match port.trim_start_matches('0') {
        "" if scheme == "https" => "443",
        "" if scheme == "http" => "80",
        "" => port,
        digits if port.bytes().all(|c| c.is_ascii_digit()) => digits,
        _ => port,
    };
    let port = if port.is_empty() { String::new() } else { format!(":{port}") };
    // A trailing dot names the same host (RFC 1034).
    let host = host.trim_end_matches('.');
    // An address has one text (RFC 5952), however its zeros are written.
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match inner.and_then(|inner| inner.parse::<Ipv6Addr>().ok()) {
        Some(address) => match address.to_ipv4_mapped() {
            Some(address) => address.to_string(),
            None => format!("[{address}]"),
        },
        None => host.to_owned(),
    };
    // Addresses of this machine by number are the same as its name (RFC 6761, 6.3).
    let host = if ["127.0.0.1", "[::1]"].contains(&host.as_str()) { "localhost" } else { &host };
    format!("{host}{port}{path}")
}

/// A text whose URLs have no login.
pub(crate) fn without_login(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        // The last `@` ends the login: a password may hold one that is not encoded.
        let host = after[..end].rfind('@').map_or(0, |at| at + 1);
        plain.extend([before, &after[host..end]]);
        rest = &after[end..];
    }
    plain + rest
}

/// A part of a URL whose codes for plain letters are those letters (RFC 3986, 6.2.2.2).
fn without_codes(text: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-._~".contains(*c);
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('%') {
        plain.push_str(before);
        let code = after.get(..2).filter(|code| code.bytes().all(|c| c.is_ascii_hexdigit()));
        let letter = code.and_then(|code| u8::from_str_radix(code, 16).ok()).map(char::from).filter(is_plain);
        plain.push(letter.unwrap_or('%'));
        rest = if letter.is_some() { &after[2..] } else { after };
    }
    plain + rest
}

/// The path of a URL without its segments `.` and `..` (RFC 3986, 5.2.4), and without its last slash.
fn without_dots(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let path: String = segments.iter().flat_map(|segment| ["/", segment]).collect();
    path.trim_end_matches('/').to_owned()
}

/// A path without its `.` and `..`, where no link is on the way.
fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// An address as it is compared: like a URL, also without a scheme, where its port is that of https.
fn normalized_address(value: &str) -> String {
    let value = value.trim();
    match value.parse::<Ipv6Addr>() {
        Ok(_) => normalized_value(&format!("https://[{value}]")),
        Err(_) if value.contains("://") => normalized_value(value),
        Err(_) => normalized_value(&format!("https://{value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_of_an_identity_may_be_absent() {
        let parsed = |text| {
            let field = IdentityField::parse(text);
            let values =
                |values: &[&str]| field.known(values.iter().map(|&value| value.to_owned()).collect());
            (field.name.to_owned(), values(&[]), values(&["A"]))
        };
        let of = |name: &str, absent: &[&str], given: &str| {
            let absent: Vec<String> = absent.iter().map(|&value| value.to_owned()).collect();
            (name.to_owned(), absent, vec![given.to_owned()])
        };
        assert_eq!(parsed("user"), of("user", &[], "A"));
        assert_eq!(parsed("user?"), of("user", &[""], "A"));
        assert_eq!(parsed("port?3306"), of("port", &["3306"], "A"));
        assert_eq!(parsed("~user?"), of("user", &[""], "a"));
    }

    #[test]
    fn path_is_relative_to_its_file() {
        let resolved = |field: &str, value: &str| {
            let field = IdentityField::parse(field);
            field.resolved(value.to_owned(), Path::new("/no-such-dir/kube/config"))
        };
        for value in ["k", "./k", "pki/../k", "/no-such-dir/kube/k", "/no-such-dir/./kube//k", "../kube/k"] {
            assert_eq!(resolved("/tokenFile", value), ["/no-such-dir/kube/k"], "{value}");
        }
        assert_eq!(resolved("!command", "helper"), ["helper"]);
        assert_eq!(resolved("!command", "./helper"), ["/no-such-dir/kube/helper"]);
        assert_eq!(resolved("token", "./k"), ["./k"]);
        let known = |value: &str| IdentityField::parse(",#port").known(vec![value.to_owned()]);
        assert_eq!(known("05432"), known("5432"));
    }

    #[test]
    fn login_of_a_url_is_removed() {
        for (text, plain) in [
            ("https://u:p@h.example/a@b", "https://h.example/a@b"),
            ("https://u:p@x@h.example:80", "https://h.example:80"),
            ("\"@s:registry\" \"https://u@h.example/\"", "\"@s:registry\" \"https://h.example/\""),
            ("https://h.example/", "https://h.example/"),
            ("u:p@h.example", "u:p@h.example"),
            ("a://b@c/ d://e@f", "a://c/ d://f"),
        ] {
            assert_eq!(without_login(text), plain);
        }
    }

    #[test]
    fn field_can_be_a_list_or_one_of_several() {
        let field = IdentityField::parse(",host|hostaddr");
        assert_eq!(field.alternatives().collect::<Vec<_>>(), ["host", "hostaddr"]);
        assert_eq!(field.elements("a, b,,".to_owned()), ["a", "b"]);
        assert_eq!(IdentityField::parse("host").elements("a,b".to_owned()), ["a,b"]);
    }

    #[test]
    fn address_without_a_scheme_is_known_in_every_spelling() {
        for (value, same) in [
            ("P.example.", "p.example:443"),
            ("p.example", "https://p.example/"),
            ("p.example:06443/", "https://P.example.:6443"),
            ("2001:DB8:0::1", "https://[2001:db8::1]"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
        ] {
            assert_eq!(normalized_address(value), normalized_address(same), "{value}");
            let plain = IdentityField::parse("@host").known(vec![value.to_owned()]);
            assert_eq!(plain, IdentityField::parse("@host").known(vec![same.to_owned()]), "{value}");
        }
        assert_ne!(normalized_address("p.example:6443"), normalized_address("p.example"));
        assert_ne!(normalized_address("/run/postgresql"), normalized_address("/run/other"));
    }

    #[test]
    fn spelling_of_a_url_does_not_count() {
        let plain = normalized_value("https://api.prod.example");
        for same in
            ["https://api.prod.example/", "HTTPS://API.prod.example:443", "https://api.prod.example:443/"]
                .into_iter()
                .chain(["https://api.prod.example:0443", "https://api.prod.example.:443"])
                .chain([
                    "https://api.prod.example/?",
                    "https://api.prod.example/?x=1",
                    "https://api.prod.example#x",
                ])
                .chain(["https://api.prod.example:", "https://api.prod.example../"])
                .chain([
                    "https://api.prod.example/./",
                    "https://api.prod.example/%2e",
                    "https://%61pi.prod%2Eexample/a/..",
                ])
        {
            assert_eq!(normalized_value(same), plain, "{same}");
        }
        for other in [
            "https://api.prod.example:6443",
            "http://api.prod.example",
            "https://api.prod.example/k8s/clusters/c1",
            "https://api.staging.example",
            "https://api.prod.example/%2f",
            "https://api.prod.example/%",
        ] {
            assert_ne!(normalized_value(other), plain, "{other}");
        }
        assert_eq!(normalized_value("https://[2001:db8::1]"), "[2001:db8::1]:443");
        assert_eq!(normalized_value("https://[2001:db8::1]:6443"), "[2001:db8::1]:6443");
        for same in ["https://localhost:6443", "https://127.0.0.1:6443", "https://[::1]:6443/"] {
            assert_eq!(normalized_value(same), "localhost:6443", "{same}");
        }
        assert_eq!(normalized_value("https://127.0.0.1"), "localhost:443");
        for same in ["https://[2001:DB8:0::1]", "https://[2001:db8::0001]:0443/"] {
            assert_eq!(normalized_value(same), "[2001:db8::1]:443", "{same}");
        }
        assert_eq!(normalized_value("https://[::ffff:10.0.0.1]:6443"), "10.0.0.1:6443");
        assert_eq!(normalized_value("postgres://db.example/d?host=x"), "db.example/d?host=x");
        assert_eq!(normalized_value("unix:///var/run/docker.sock"), "/var/run/docker.sock");
    }
}
