//! Identity of a context, which an approval is bound to.
//!
//! A name alone does not identify a context: projects have contexts of the same name, and a file can be edited after a
//! person has approved it. The identity covers the scope, the file and everything that the file binds.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::context::{Context, ContextLocation};
use crate::settings::{Data, Document, Node};
use sessile_wire::hex::hex;

/// Keys of a context file that bind nothing: a change of them keeps an approval.
const UNBOUND: &[&str] = &["description", "guard"];

/// Scope, file and bindings of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContextIdentity {
    /// The file.
    pub(super) path: String,
    /// The scope, and a SHA-256 digest of scope, file and bindings.
    pub(super) digest: String,
}

impl Context {
    /// Digest of what an approval covers: the scope, the file and everything that the file binds.
    pub fn digest(&self) -> String {
        ContextIdentity::of(self).digest
    }
}

impl ContextIdentity {
    /// The identity of a context.
    pub(super) fn of(context: &Context) -> Self {
        Self::new(context.home, context.path(), context.root())
    }

    /// Current identity of an approved context; reads its file again. `None` if the context no longer exists.
    pub(super) fn reload(path: &str, digest: &str, name: &str) -> Option<Self> {
        // The scope of the approval, not of this call: the same file can be a project's or the user's.
        let (scope, _) = digest.split_once(':')?;
        let home = [ContextLocation::User, ContextLocation::Project, ContextLocation::File]
            .into_iter()
            .find(|home| home.as_str() == scope)?;
        let path = Path::new(path);
        let document = Document::load(path).ok()??;
        let root = match home {
            ContextLocation::File => document.root().get("contexts")?.get(name)?,
            ContextLocation::User | ContextLocation::Project | ContextLocation::Anonymous => document.root(),
        };
        Some(Self::new(home, path, root))
    }

    /// Whether the digest of an approval is that of this table in this file, in whatever scope.
    pub(super) fn is_digest_of(digest: &str, path: &Path, root: &Node) -> bool {
        // The table is found by its path alone here, and the call's own scope may be another one.
        [ContextLocation::User, ContextLocation::Project, ContextLocation::File]
            .into_iter()
            .any(|home| Self::new(home, path, root).digest == digest)
    }

    /// The path of a context's file as an approval names it.
    pub(super) fn path_of(path: &Path) -> String {
        resolved(path).to_string_lossy().into_owned()
    }

    fn new(home: ContextLocation, path: &Path, root: &Node) -> Self {
        let path = resolved(path);
        let mut hasher = Sha256::new();
        add(&mut hasher, b'p', path.as_os_str().as_bytes());
        add_table(&mut hasher, root.members().iter().filter(|(key, _)| !UNBOUND.contains(&key.as_str())));
        let scope = home.as_str();
        ContextIdentity {
            path: path.to_string_lossy().into_owned(),
            // The scope is outside the hash, so that it can be read back from a stored approval.
            digest: format!("{scope}:{}", hex(&hasher.finalize())),
        }
    }
}

/// The path with the links of its directory resolved. The file itself may be a link; then it is still another file than
/// the one that it points to.
fn resolved(path: &Path) -> PathBuf {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
    dir.canonicalize().map_or_else(|_| path.to_owned(), |dir| dir.join(name))
}

fn add_node(hasher: &mut Sha256, node: &Node) {
    match &node.data {
        Data::Bool(value) => add(hasher, b'b', &[u8::from(*value)]),
        Data::Integer(value) => add(hasher, b'i', &value.to_be_bytes()),
        Data::Text(text) => add(hasher, b's', text.as_bytes()),
        Data::Other(kind) => add(hasher, b'o', kind.as_bytes()),
        Data::Array(nodes) => {
            add(hasher, b'a', &nodes.len().to_be_bytes());
            nodes.iter().for_each(|node| add_node(hasher, node));
        }
        Data::Table(members) => add_table(hasher, members.iter()),
    }
}

/// Adds a table. The order of its keys in the file means nothing.
fn add_table<'n>(hasher: &mut Sha256, members: impl Iterator<Item = &'n (String, Node)>) {
    let mut members: Vec<_> = members.collect();
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    add(hasher, b't', &members.len().to_be_bytes());
    for (key, node) in members {
        add(hasher, b'k', key.as_bytes());
        add_node(hasher, node);
    }
}

/// Adds a value with its kind and length, so that no two trees give the same bytes.
fn add(hasher: &mut Sha256, kind: u8, bytes: &[u8]) {
    hasher.update([kind]);
    hasher.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> String {
        let document = Document::parse(Path::new("/nowhere/prod.toml"), text.to_owned()).unwrap();
        ContextIdentity::new(ContextLocation::User, document.path(), document.root()).digest
    }

    #[test]
    fn every_binding_counts() {
        let texts = [
            "",
            "[env]",
            "[env]\nA = \"1\"",
            "[env]\nA = \"2\"",
            "[env]\nB = \"1\"",
            "[env]\nA = { credential = \"1\" }",
            "[settings]\nA = \"1\"",
            "[values]\nA = \"1\"",
            "[tools.x]\nA = 1",
            "[tools.x]\nA = true",
            "[tools.x]\nA = [\"1\"]",
            "[tools.x]\nA = [\"1\", \"\"]",
            "[tools.x.A]",
        ];
        let mut digests: Vec<String> = texts.iter().map(|text| digest(text)).collect();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), texts.len());
    }

    #[test]
    fn description_guard_order_and_notation_do_not_count() {
        let one = "description = \"x\"\nguard = \"approval\"\n[env]\nA = \"1\"\nB = \"2\"\n";
        let two = "# a comment\nenv = { B = '2', A = '1' }\n";
        assert_eq!(digest(one), digest(two));
        assert_ne!(digest("[env]\ndescription = \"x\""), digest("[env]"), "only at the top");
    }

    #[test]
    fn scope_and_file_count() {
        let root = Document::parse(Path::new("x.toml"), String::new()).unwrap();
        let identity = |home, path| ContextIdentity::new(home, Path::new(path), root.root()).digest;
        assert_ne!(
            identity(ContextLocation::User, "/a/prod.toml"),
            identity(ContextLocation::Project, "/a/prod.toml")
        );
        assert_ne!(
            identity(ContextLocation::User, "/a/prod.toml"),
            identity(ContextLocation::User, "/b/prod.toml")
        );
    }
}
