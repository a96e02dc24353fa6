//! Places that the profiles name for the import, read and not changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sessile_wire::hex::hex;
use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::files::read_up_to;
use crate::import::scan::names;
use crate::state::State;
use crate::tool::{
    ImportEntry, ImportPlace, OriginalFiles, Originals, Profile, SessionPaths, TargetFormat, TargetSet,
    filled, gitconfig, import_entries, is_like, tree,
};

/// Largest file that an entry is described in.
const LARGEST: u64 = 4 * 1024 * 1024;
/// Most files of one place.
const MOST_FILES: usize = 1000;

/// Entry of a place, and the file that has it.
pub(super) struct PlacedEntry {
    pub(super) file: PathBuf,
    /// Entry of another set that holds it, as a host holds its users.
    pub(super) holder: Option<String>,
    pub(super) entry: ImportEntry,
}

/// The user's directories, as places name them.
pub(super) struct ImportPlaces<'a> {
    state: &'a State,
    paths: SessionPaths,
    originals: OriginalFiles<'a>,
}

impl<'a> ImportPlaces<'a> {
    pub(super) fn of(state: &'a State) -> Self {
        let originals = Originals::of(state.app(), state.world());
        let paths = SessionPaths::of(state.world(), &originals, Path::new(""), "", PathBuf::new());
        ImportPlaces { state, paths, originals: OriginalFiles::of(state) }
    }

    /// The entries of a place that count.
    pub(super) fn entries(&self, profile: &Profile, place: &ImportPlace) -> Result<Vec<PlacedEntry>> {
        let is_holder = |set: &&TargetSet| {
            let placeholder = format!("{{{}}}", set.name);
            place.place.entries.iter().any(|path| path.contains(&placeholder))
        };
        let Some(set) = profile.targets.iter().find(is_holder) else {
            return self.entries_in(profile, place, None);
        };
        let mut found = Vec::new();
        for holder in names(&self.originals, profile, set, &BTreeMap::new())? {
            found.extend(self.entries_in(profile, place, Some((&set.name, &holder)))?);
        }
        Ok(found)
    }

    /// The entries of a place, where another set holds them only those of one holder: its set and its name.
    fn entries_in(
        &self,
        profile: &Profile,
        place: &ImportPlace,
        holder: Option<(&str, &str)>,
    ) -> Result<Vec<PlacedEntry>> {
        let said = holder.map(|(set, name)| (set.to_owned(), name.to_owned())).into_iter().collect();
        let holder = holder.map(|(_, name)| name.to_owned());
        let mut found = Vec::new();
        for file in self.files(profile, place) {
            if !self.is_allowed(place, &file) {
                continue;
            }
            for mut entry in import_entries(&place.place, &file, &|text| filled(text, "", &said))? {
                if let Some(field) = &place.through {
                    let Some(path) = entry.field(field) else { continue };
                    let path = self.whole(&path, file.parent());
                    // An included file need not exist, and one that cannot be read describes nothing.
                    let Ok(Some(text)) = read_up_to(&path, LARGEST) else { continue };
                    entry.describe(gitconfig::tree(&text));
                }
                let mut holds = |(field, values): &(String, String)| {
                    entry.field(field).is_some_and(|found| values.split('|').any(|value| value == found))
                };
                if place.when.iter().all(&mut holds) {
                    found.push(PlacedEntry { file: file.clone(), holder: holder.clone(), entry });
                }
            }
        }
        Ok(found)
    }

    /// A part of an imported entry. A path is written with `~` for the home, as people do.
    pub(super) fn part(&self, place: &ImportPlace, found: &mut PlacedEntry, part: &str) -> Option<String> {
        let (_, field) = place.fields.iter().find(|(name, _)| name == part)?;
        match field.as_str() {
            "{file}" => Some(self.shortened(&found.file)),
            field => found.entry.field(field).map(|text| unquoted(&text)),
        }
    }

    /// A path with `~` for the home.
    pub(super) fn shortened(&self, path: &Path) -> String {
        let below = self.paths.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        match below {
            Some(rest) => format!("~/{}", rest.to_string_lossy()),
            None => path.to_string_lossy().into_owned(),
        }
    }

    /// The files of a place that exist.
    fn files(&self, profile: &Profile, place: &ImportPlace) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        paths.extend(place.copy.iter().flat_map(|copy| self.originals.files_of(profile, copy)));
        for template in &place.files {
            paths.extend(self.paths.fill(template).map(|text| self.whole(&text, self.state.world().cwd())));
        }
        if let Some((file, list)) = &place.listed
            && let Some(file) = self.paths.fill(file)
            && let Some(notation) = notation(place.place.format)
            && let Ok(Some(text)) = read_up_to(Path::new(&file), LARGEST)
            && let Ok(mut tree) = notation.parse(Path::new(&file), &text)
        {
            let listed = tree::TreePath::parse(list, str::to_owned);
            let listed = listed.find_mut(&mut tree).into_iter();
            paths.extend(listed.filter_map(|path| path.text().map(|path| self.whole(path, None))));
        }
        let mut files: Vec<PathBuf> = Vec::new();
        for path in paths.iter().flat_map(|path| matching(path)) {
            if !files.contains(&path) && files.len() < MOST_FILES {
                files.push(path);
            }
        }
        files
    }

    /// A path of a file that is relative to a directory, or to the home.
    fn whole(&self, path: &str, dir: Option<&Path>) -> PathBuf {
        match (Path::new(path).strip_prefix("~"), &self.paths.home, dir) {
            (Ok(rest), Some(home), _) => home.join(rest),
            (_, _, Some(dir)) => dir.join(path),
            _ => PathBuf::from(path),
        }
    }

    /// Whether the tool itself accepts a file of the working directory, which a stranger may have written.
    fn is_allowed(&self, place: &ImportPlace, file: &Path) -> bool {
        let Some(template) = &place.allowed else { return true };
        let Ok(Some(text)) = read_up_to(file, LARGEST) else { return false };
        let digest =
            Sha256::new().chain_update(format!("{}\n", file.display())).chain_update(text).finalize();
        let mark = self.paths.fill(&template.replace("{sha256}", &hex(&digest)));
        mark.is_some_and(|mark| Path::new(&mark).exists())
    }
}

/// The notation of a format of trees.
fn notation(format: TargetFormat) -> Option<tree::Notation> {
    match format {
        TargetFormat::Yaml => Some(tree::Notation::Yaml),
        TargetFormat::Json => Some(tree::Notation::Json),
        _ => None,
    }
}

/// Files that match a path, whose last part may be a pattern.
fn matching(path: &Path) -> Vec<PathBuf> {
    let (Some(dir), Some(pattern)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    if !pattern.contains('*') {
        return if path.exists() { vec![path.to_owned()] } else { Vec::new() };
    }
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = names
        .filter(|found| found.file_name().to_str().is_some_and(|name| is_like(pattern, name)))
        .map(|found| found.path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

/// Fuzz target: the entries of a file in a place, with every field that the place names.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz_entries(place: &ImportPlace, file: &Path) -> Result<()> {
    let fields = place.fields.iter().chain(&place.when).map(|(_, field)| field).chain(&place.through);
    let fields: Vec<&String> = fields.collect();
    for mut entry in import_entries(&place.place, file, &str::to_owned)? {
        for field in &fields {
            let Some(text) = entry.field(field) else { continue };
            let inner = unquoted(&text);
            assert!(text.contains(&inner));
        }
        entry.describe(gitconfig::tree(entry.name()));
    }
    if let (Some((_, list)), Some(notation)) = (&place.listed, notation(place.place.format))
        && let Ok(Some(text)) = read_up_to(file, LARGEST)
        && let Ok(mut tree) = notation.parse(file, &text)
    {
        let _ = tree::TreePath::parse(list, str::to_owned).find_mut(&mut tree).len();
    }
    Ok(())
}

/// Text of a shell or an INI file without the quotes around it.
fn unquoted(text: &str) -> String {
    let inner = ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    inner.unwrap_or(text).to_owned()
}
