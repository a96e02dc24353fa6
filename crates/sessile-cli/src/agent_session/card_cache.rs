//! Cached cards of agents, one file each in the cache directory.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sessile::State;
use sessile::files::LockedDir;
use sessile_wire::hex::hex;

use crate::a2a::{CachedCard, CardCache};

/// Largest card that is cached.
const MAX_CARD: usize = 256 << 10;

/// Most cards in the cache; a full cache is emptied.
const MAX_CARDS: usize = 200;

/// Cards in the cache directory of this user.
pub(super) struct CardFiles<'a> {
    state: &'a State,
    dir: PathBuf,
}

impl<'a> CardFiles<'a> {
    /// Cache of this call, if it has a place for one.
    pub(super) fn new(state: &'a State) -> Option<Self> {
        let dir = state.dirs().cache()?.join(sessile::agents::CARDS);
        Some(CardFiles { state, dir })
    }

    fn name(url: &str) -> PathBuf {
        let digest = ring::digest::digest(&ring::digest::SHA256, url.as_bytes());
        PathBuf::from(format!("{}.json", hex(digest.as_ref())))
    }

    fn try_store(&self, url: &str, card: &CachedCard) -> Result<(), sessile::Error> {
        let dir = LockedDir::lock(&self.state.locker()?, &self.dir, 0o700)?;
        let names = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names: Vec<PathBuf> = names.map(|entry| PathBuf::from(entry.file_name())).collect();
        if names.len() > MAX_CARDS {
            for name in &names {
                dir.remove(name)?;
            }
        }
        let text = json!({ "url": url, "etag": card.etag, "card": card.body }).to_string();
        dir.replace_for_now(&CardFiles::name(url), &text, 0o600)
    }
}

impl CardCache for CardFiles<'_> {
    fn load(&self, url: &str) -> Option<CachedCard> {
        let path: &Path = &self.dir.join(CardFiles::name(url));
        sessile::files::check_trusted(path).ok()?;
        let json: Value = sessile::json::from_str(&sessile::files::read(path).ok()??).ok()?;
        let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
        // The name of the file is only a digest.
        (text("url")? == url).then_some(())?;
        Some(CachedCard { etag: text("etag")?, body: text("card")? })
    }

    fn store(&self, url: &str, card: &CachedCard) {
        if card.body.len() <= MAX_CARD {
            // Without the cache the next call fetches the card again.
            let _ = self.try_store(url, card);
        }
    }
}
