//! Copying the user's state into a room, so that logins still work there and nothing is written back.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sessile_wire::hex::hex;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result, ToolError};
use crate::files::read_up_to;
use crate::tool::gitconfig;
use crate::tool::paths::SessionPaths;
use crate::tool::planted_paths::PlantedPaths;
use crate::tool::profile::{Append, Binding, Format, Placeholder, Profile, Seed};
use crate::tool::tree::{Notation, Tree, TreePath};

/// The largest file that is understood rather than copied.
pub(crate) const LARGEST_UNDERSTOOD: u64 = 64 * 1024 * 1024;
/// Largest state of one tool in a room; more is a cache that the profile does not list.
pub(super) const LARGEST: u64 = 256 * 1024 * 1024;
pub(super) const MOST_FILES: usize = 20_000;
/// The largest file whose content is digested; a larger one counts by its size and its time.
const LARGEST_DIGESTED: u64 = 4 * 1024 * 1024;
/// The largest file that is read at once. Most are much smaller.
const LARGEST_AT_ONCE: u64 = 64 * 1024;
/// How deep directories are copied; a directory in a directory takes a frame of the stack.
pub(super) const DEEPEST: usize = 100;

/// Names of files that editors and people leave beside an original.
const BACKUPS: [&str; 11] =
    ["*~", "*.bak", "*.bak.*", "*.backup", "*.old", "*.orig", "*.save", "*.swp", "*.swo", "#*#", ".#*"];

/// Copy of a tool's state in a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedCopy {
    /// Sources; empty if the user had none.
    pub from: Vec<PathBuf>,
    /// Path that the source would have.
    #[serde(default)]
    pub usual: PathBuf,
    /// Destination.
    pub to: PathBuf,
    /// The copy's content, as a number.
    pub digest: Option<String>,
    /// The original's content at that time.
    pub original: Option<String>,
}

/// Existing sources of a seed; `tool::inputs` lists the same paths. A path in the user's own variable is relative to the working directory.
pub(crate) fn sources(
    seed: &Seed,
    places: &SessionPaths,
    own: Option<OsString>,
    cwd: Option<&Path>,
) -> Vec<PathBuf> {
    let absolute = |path: PathBuf| cwd.map_or_else(|| path.clone(), |cwd| cwd.join(&path));
    let all: Vec<PathBuf> = match own {
        Some(value) if seed.merge => {
            // A variable that names several files to merge is a list, as `PATH` is.
            std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).map(absolute).collect()
        }
        Some(value) => vec![absolute(PathBuf::from(value))],
        None => seed.from.iter().filter_map(|text| places.fill(text)).map(PathBuf::from).collect(),
    };
    // Who wants a tool to read nothing says so by this.
    let is_nothing = |path: &Path| path == Path::new("/dev/null");
    let mut there = all.into_iter().filter(|path| !is_nothing(path) && path.exists());
    if seed.merge { there.collect() } else { there.next().into_iter().collect() }
}

/// Files that a bound value names as the source of a copy, with `~` expanded to the user's home.
pub(crate) fn bound_source(
    profile: &Profile,
    seed: &Seed,
    said: &BTreeMap<String, String>,
    places: &SessionPaths,
) -> Option<OsString> {
    let is_source = |binding: &Binding| binding.source_of.as_deref() == Some(seed.to.as_str());
    let (key, _) = profile.bind.iter().find(|(_, binding)| is_source(binding))?;
    let whole = |path: PathBuf| match (path.strip_prefix("~"), &places.home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    };
    let paths: Vec<PathBuf> = std::env::split_paths(said.get(key)?).map(whole).collect();
    std::env::join_paths(paths).ok()
}

/// Copies one seed into the room. Leftovers of an earlier attempt are replaced.
pub(crate) fn plant(
    tool: &str,
    seed: &Seed,
    from: &[PathBuf],
    (places, planted): (&SessionPaths, &PlantedPaths),
    durable: bool,
) -> Result<SeedCopy> {
    plant_linking(tool, seed, from, &[], (places, planted), durable)
}

/// The same, with links instead of copies of some entries of a directory.
pub(crate) fn plant_linking(
    tool: &str,
    seed: &Seed,
    from: &[PathBuf],
    linked: &[OsString],
    (places, planted): (&SessionPaths, &PlantedPaths),
    durable: bool,
) -> Result<SeedCopy> {
    let to = places.room.join(&seed.to);
    // A killed attempt may have left a part; copies count only once the plan names them.
    planted.clear(&to)?;
    if let Some(parent) = to.parent().filter(|parent| *parent != places.room) {
        planted.make_dir(parent)?;
    }
    planted.add(&to);
    let usual = seed.from.first().and_then(|text| places.fill(text)).map(PathBuf::from).unwrap_or_default();
    let first = from.first().map_or(Path::new(""), PathBuf::as_path);
    let mut copier = Copier { linked, ..Copier::new(tool, seed, first, durable) };
    if let ([file], None) = (from, seed.format)
        && let Some(digest) = copier.small_file(file, &to)?
    {
        let original = Some(digest.clone());
        return Ok(SeedCopy { from: from.to_vec(), usual, digest: Some(digest), original, to });
    }
    // Read before the copy: a change in between then shows as a change of the original, not of the copy.
    let original = digest_all(from);
    // What is written here need not be read again.
    let mut written = None;
    match (from, seed.format) {
        ([], _) => match seed.make {
            Some(Placeholder::Dir) => make_dir(&to)?,
            // An empty file is not valid JSON.
            Some(Placeholder::File) if seed.format == Some(Format::Json) => {
                written = Some(copier.put(&to, b"{}\n", 0o600)?);
            }
            Some(Placeholder::File) => written = Some(copier.put(&to, b"", 0o600)?),
            None => {}
        },
        ([dir], _) if dir.is_dir() => copier.directory(dir, &to, Path::new(""))?,
        (files, Some(format)) => {
            let text = understood(files, format, seed)?;
            written = Some(copier.put(&to, text.as_bytes(), 0o600)?);
        }
        (files, None) => {
            for file in files {
                copier.file(file, &to)?;
            }
        }
    }
    if let (Some(append), Some(notation)) = (&seed.append, seed.format.and_then(Format::notation)) {
        append_to(&mut copier, &to, append, notation, places)?;
        written = None;
    }
    let is_empty = from.is_empty() && seed.make.is_none() && seed.append.is_none();
    let digest = if is_empty { None } else { written.or_else(|| digest(&to)) };
    Ok(SeedCopy { from: from.to_vec(), usual, digest, original, to })
}

/// Copies a file or a directory unchanged.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    let seed = Seed::default();
    let mut copier = Copier::new("", &seed, from, false);
    if from.is_dir() { copier.directory(from, to, Path::new("")) } else { copier.file(from, to) }
}

/// Several files merged into one text, with relative paths made absolute.
fn understood(files: &[PathBuf], format: Format, seed: &Seed) -> Result<String> {
    let Some(notation) = format.notation() else {
        let mut all = String::new();
        for file in files {
            let text = read_up_to(file, LARGEST_UNDERSTOOD)?.unwrap_or_default();
            all.push_str(&gitconfig::relocated(&text, directory(file)));
        }
        return Ok(all);
    };
    let mut whole: Option<Tree> = None;
    for file in files {
        let text = read_up_to(file, LARGEST_UNDERSTOOD)?.unwrap_or_default();
        let mut tree = notation.parse(file, &text)?;
        if let (Tree::Map(members), false) = (&mut tree, seed.keys.is_empty()) {
            members.retain(|(key, _)| seed.keys.contains(&key.text));
        }
        for (paths, only_with_slash) in [(&seed.absolute, false), (&seed.absolute_commands, true)] {
            for path in paths {
                for place in TreePath::parse(path, str::to_owned).find_mut(&mut tree) {
                    if let Tree::Scalar(scalar) = place {
                        let relative = !scalar.text.is_empty() && !scalar.text.starts_with('/');
                        // A command without a slash is looked up in PATH.
                        if relative && (!only_with_slash || scalar.text.contains('/')) {
                            scalar.text = directory(file).join(&scalar.text).to_string_lossy().into_owned();
                            // A path may look like a number or a boolean.
                            scalar.quoted = true;
                        }
                    }
                }
            }
        }
        match &mut whole {
            None => whole = Some(tree),
            Some(whole) => whole.unite(tree),
        }
    }
    Ok(notation.write(&whole.unwrap_or(Tree::Map(Vec::new()))))
}

fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

fn append_to(
    copier: &mut Copier<'_>,
    to: &Path,
    append: &Append,
    notation: Notation,
    places: &SessionPaths,
) -> Result<()> {
    let Some(value) = places.fill(&append.value).filter(|value| Path::new(value).exists()) else {
        return Ok(());
    };
    let text = read_up_to(to, LARGEST_UNDERSTOOD)?.unwrap_or_default();
    let mut tree = notation.parse(to, &text)?;
    TreePath::parse(&append.key, str::to_owned).append(&mut tree, &value);
    remove(to)?;
    copier.put(to, notation.write(&tree).as_bytes(), 0o600).map(drop)
}

struct Copier<'a> {
    tool: &'a str,
    seed: &'a Seed,
    from: &'a Path,
    bytes: u64,
    files: usize,
    durable: bool,
    /// Entries of the directory itself that are linked because they are too large.
    linked: &'a [OsString],
    /// The directories that are being copied, the outermost first.
    inside: Vec<(u64, u64)>,
}

impl<'a> Copier<'a> {
    fn new(tool: &'a str, seed: &'a Seed, from: &'a Path, durable: bool) -> Self {
        Copier { tool, seed, from, bytes: 0, files: 0, durable, linked: &[], inside: Vec::new() }
    }

    fn directory(&mut self, from: &Path, to: &Path, relative: &Path) -> Result<()> {
        if relative.components().count() > DEEPEST {
            let (tool, path) = (self.tool.to_owned(), self.from.to_owned());
            return Err(ToolError::StateTooLarge { tool, path }.into());
        }
        make_dir(to)?;
        if relative.as_os_str().is_empty() {
            // A link may lead back to the top, and the copy may lie inside of what is copied.
            let dirs = [from, to].into_iter().filter_map(|dir| dir.metadata().ok());
            self.inside.extend(dirs.map(|found| (found.dev(), found.ino())));
        }
        let entries = std::fs::read_dir(from).map_err(|error| Error::io("read", from, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| Error::io("read", from, error))?;
            let (path, name) = (entry.path(), relative.join(entry.file_name()));
            let shown = name.to_string_lossy();
            let matches = |patterns: &[String]| patterns.iter().any(|pattern| is_like(pattern, &shown));
            let target = to.join(entry.file_name());
            // Links are followed: the room must not lead back into what is shared.
            // A dangling link has nothing to copy.
            let Ok(kind) = path.metadata() else { continue };
            if matches(&self.seed.except) || (self.seed.skip_backups && is_backup(&entry.file_name())) {
                continue;
            } else if matches(&self.seed.link) || self.linked.iter().any(|linked| name == Path::new(linked)) {
                link(&path, &target)?;
            } else if kind.is_dir() {
                // A linked directory may lead round in a circle.
                let id = (kind.dev(), kind.ino());
                if !self.inside.contains(&id) {
                    self.inside.push(id);
                    self.directory(&path, &target, &name)?;
                    self.inside.pop();
                }
            } else if kind.is_file() {
                self.file(&path, &target)?;
            }
            // Sockets and pipes belong to whoever listens at them.
        }
        // What is linked may come to be there later, by the first login for example.
        for name in
            self.seed.link.iter().filter(|name| relative.as_os_str().is_empty() && !name.contains('*'))
        {
            let target = to.join(name);
            if target.symlink_metadata().is_err() && !name.contains('/') {
                link(&from.join(name), &target)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, from: &Path, to: &Path) -> Result<()> {
        let Some((source, found)) = open_source(from)? else { return Ok(()) };
        crate::files::require_file(from, &found)?;
        self.count(found.len())?;
        let mut target = new_file(to, mode_of_copy(&found))?;
        // The file may grow while it is copied.
        std::io::copy(&mut source.take(LARGEST), &mut target)
            .map_err(|error| Error::io("write", to, error))?;
        self.settle(&target, to)
    }

    /// Copies a file that is small, and returns its digest; `None` for anything else.
    fn small_file(&mut self, from: &Path, to: &Path) -> Result<Option<String>> {
        let Ok(Some((source, found))) = open_source(from) else { return Ok(None) };
        if !found.is_file() || found.len() > LARGEST_AT_ONCE {
            return Ok(None);
        }
        let mut content = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0) + 1);
        let read = source.take(LARGEST_AT_ONCE + 1).read_to_end(&mut content);
        // The file may have grown meanwhile.
        match read {
            Ok(length) if length as u64 <= LARGEST_AT_ONCE => {
                self.put(to, &content, mode_of_copy(&found)).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Writes a new file. Returns its digest.
    fn put(&mut self, to: &Path, bytes: &[u8], mode: u32) -> Result<String> {
        self.count(bytes.len() as u64)?;
        let mut target = new_file(to, mode)?;
        target.write_all(bytes).map_err(|error| Error::io("write", to, error))?;
        self.settle(&target, to)?;
        Ok(digest_of_content(bytes))
    }

    fn settle(&self, file: &File, path: &Path) -> Result<()> {
        if !self.durable {
            return Ok(());
        }
        // The plan names this copy after a crash, so its content must be there.
        file.sync_data().map_err(|error| Error::io("write", path, error))
    }

    fn count(&mut self, bytes: u64) -> Result<()> {
        self.bytes += bytes;
        self.files += 1;
        if self.bytes > LARGEST || self.files > MOST_FILES {
            return Err(
                ToolError::StateTooLarge { tool: self.tool.to_owned(), path: self.from.to_owned() }.into()
            );
        }
        Ok(())
    }
}

/// Opens a file to be copied; `None` if it does not exist.
fn open_source(from: &Path) -> Result<Option<(File, Metadata)>> {
    let fail = |error| Error::io("copy", from, error);
    // Without it, opening a pipe would wait for a writer.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let source = match OpenOptions::new().read(true).custom_flags(flags).open(from) {
        Ok(source) => source,
        // It was there a moment ago: tools come and go with temporary files.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let found = source.metadata().map_err(fail)?;
    Ok(Some((source, found)))
}

/// Owner only, because the room is private. Executables stay executable.
fn mode_of_copy(original: &Metadata) -> u32 {
    original.permissions().mode() & 0o700 | 0o600
}

fn new_file(path: &Path, mode: u32) -> Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let file = file.map_err(|error| Error::io("write", path, error))?;
    // Explicit, because `open` applies the umask.
    file.set_permissions(Permissions::from_mode(mode)).map_err(|error| Error::io("write", path, error))?;
    Ok(file)
}

/// Creates a directory in a room. Syncing is left to the files in it.
pub(crate) fn make_dir(dir: &Path) -> Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| Error::io("make directory", dir, error))
}

pub(crate) fn link(to: &Path, at: &Path) -> Result<()> {
    std::os::unix::fs::symlink(to, at).map_err(|error| Error::io("link", at, error))
}

#[expect(clippy::disallowed_methods, reason = "removes the rest of an earlier attempt from a room")]
pub(crate) fn remove(path: &Path) -> Result<()> {
    let removed = match path.symlink_metadata() {
        Err(_) => return Ok(()),
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
    };
    removed.map_err(|error| Error::io("remove", path, error))
}

pub(super) fn is_backup(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    BACKUPS.iter().any(|pattern| is_like(pattern, &name))
}

/// Whether a name matches a pattern in which `*` matches any text.
pub(crate) fn is_like(pattern: &str, name: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(before) else { return false };
    (0..=name.len()).filter(|at| name.is_char_boundary(*at)).any(|at| is_like(rest, &name[at..]))
}

/// The same for the name of a variable. A `~` before the pattern ignores case: some tools do.
pub(crate) fn is_variable_like(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix('~') {
        Some(pattern) => is_like(&pattern.to_ascii_lowercase(), &name.to_ascii_lowercase()),
        None => is_like(pattern, name),
    }
}

/// Digest of a file's content, or of a directory's names and contents. Links count as links.
pub(crate) fn digest(path: &Path) -> Option<String> {
    let mut hasher = Sha256::new();
    add(path, Path::new(""), &mut hasher)?;
    Some(hex(&hasher.finalize()))
}

/// The same of a file with this content.
fn digest_of_content(content: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update([0]);
    hasher.update(content);
    hasher.update([1]);
    hex(&hasher.finalize())
}

pub(crate) fn digest_all(paths: &[PathBuf]) -> Option<String> {
    match paths {
        [] => None,
        [path] => digest(path),
        paths => Some(paths.iter().filter_map(|path| digest(path)).collect::<Vec<_>>().join(" ")),
    }
}

fn add(path: &Path, name: &Path, hasher: &mut Sha256) -> Option<()> {
    use std::os::unix::ffi::OsStrExt;
    // The top may be a link to the user's real file, whose content counts; below it links count as links.
    let kind = if name.as_os_str().is_empty() { path.metadata() } else { path.symlink_metadata() }.ok()?;
    hasher.update(name.as_os_str().as_bytes());
    // Separators keep `a` + `bc` apart from `ab` + `c`.
    hasher.update([0]);
    if kind.is_dir() && name.components().count() <= DEEPEST {
        let mut names: Vec<_> =
            std::fs::read_dir(path).ok()?.flatten().map(|entry| entry.file_name()).collect();
        // The order of a directory differs between file systems and copies.
        names.sort();
        for entry in names {
            // What cannot be read counts by its name.
            let _ = add(&path.join(&entry), &name.join(&entry), hasher);
        }
    } else if kind.is_file() && kind.len() > LARGEST_DIGESTED {
        // Nobody waits for the content of what is so large.
        hasher.update(kind.len().to_le_bytes());
        hasher.update(kind.mtime().to_le_bytes());
        hasher.update(kind.mtime_nsec().to_le_bytes());
    } else if kind.is_file() {
        let mut file = File::open(path).ok()?;
        let mut buffer = [0; 16 * 1024];
        loop {
            match file.read(&mut buffer).ok()? {
                0 => break,
                count => hasher.update(&buffer[..count]),
            }
        }
    } else if kind.is_symlink() {
        hasher.update(path.read_link().ok()?.as_os_str().as_bytes());
    }
    hasher.update([1]);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::paths::Originals;

    #[test]
    fn links_back_and_the_copy_itself_are_not_copied() {
        let root = tempfile::tempdir().unwrap();
        let from = root.path().join("from");
        std::fs::create_dir_all(from.join("below")).unwrap();
        for name in ["back", "below/back"] {
            std::os::unix::fs::symlink(&from, from.join(name)).unwrap();
        }
        let to = from.join("copies/one");
        copy(&from, &to).unwrap();
        let mut names: Vec<_> =
            std::fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["below", "copies"]);
        for empty in ["below", "copies"] {
            assert_eq!(std::fs::read_dir(to.join(empty)).unwrap().count(), 0, "{empty}");
        }
    }

    /// Places of a session whose room and home are in a directory.
    fn places(dir: &Path) -> SessionPaths {
        let (world, room) = (crate::world::World::empty(), dir.join("room"));
        std::fs::create_dir_all(&room).unwrap();
        SessionPaths::of(&world, &Originals::default(), &room, "id", dir.join("sockets"))
    }

    fn seed_to(to: &str) -> Seed {
        Seed { to: to.to_owned(), ..Seed::default() }
    }

    #[test]
    fn digest_of_a_copy_equals_that_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let (places, planted) = (places(dir.path()), PlantedPaths::of(true));
        let sizes = [0, 1, LARGEST_AT_ONCE, LARGEST_AT_ONCE + 1];
        for (number, size) in sizes.into_iter().enumerate() {
            let from = dir.path().join(format!("file{number}"));
            new_file(&from, 0o600).unwrap().set_len(size).unwrap();
            let to = format!("tool/file{number}");
            let copy = plant("tool", &seed_to(&to), std::slice::from_ref(&from), (&places, &planted), false);
            let copy = copy.unwrap();
            assert_eq!((&copy.digest, &copy.original), (&digest(&from), &digest(&copy.to)), "{size}");
            assert_eq!(copy.to.metadata().unwrap().len(), size);
        }
        for (to, make) in [("empty", Placeholder::File), ("dir", Placeholder::Dir)] {
            let seed = Seed { make: Some(make), ..seed_to(to) };
            let copy = plant("tool", &seed, &[], (&places, &planted), false).unwrap();
            assert!(copy.digest.is_some() && copy.digest == digest(&copy.to), "{to}");
        }
    }

    #[test]
    fn copy_replaces_leftovers_and_other_copies() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        std::fs::create_dir(&from).unwrap();
        new_file(&from.join("file"), 0o600).unwrap();
        for is_new in [false, true] {
            let (places, planted) = (places(&dir.path().join(is_new.to_string())), PlantedPaths::of(is_new));
            let plant = |to: &str, from: &[PathBuf]| {
                plant("tool", &seed_to(to), from, (&places, &planted), false).unwrap()
            };
            if !is_new {
                std::fs::create_dir_all(places.room.join("a/b/left/over")).unwrap();
            }
            let file = from.join("file");
            for _ in 0..2 {
                let copy = plant("a/b/file", std::slice::from_ref(&file));
                assert!(copy.to.is_file(), "{is_new}");
            }
            // In the place of the file, and of the directory above it.
            for to in ["a/b/file", "a/b"] {
                let copy = plant(to, std::slice::from_ref(&from));
                let names = std::fs::read_dir(&copy.to).unwrap().map(|entry| entry.unwrap().file_name());
                assert_eq!(names.collect::<Vec<_>>(), ["file"], "{is_new} {to}");
            }
            assert!(!plant("a/b", &[]).to.exists(), "{is_new}");
            assert!(plant("a/b/file", std::slice::from_ref(&file)).to.is_file(), "{is_new}");
        }
    }

    #[test]
    fn patterns() {
        for (pattern, name, wanted) in [
            ("run", "run", true),
            ("run", "runs", false),
            ("*.sock", "a.sock", true),
            ("a*c*", "abcd", true),
            ("logs/*", "logs/x", true),
            ("*", "", true),
            ("é*", "éa", true),
        ] {
            assert_eq!(is_like(pattern, name), wanted, "{pattern} {name}");
        }
    }
}
