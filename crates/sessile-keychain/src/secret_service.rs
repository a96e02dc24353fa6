//! Items of the Secret Service.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bus::{Bus, ErrorReply};
use crate::collection::{self, COLLECTION, SERVICE, call, root};
use crate::decode::Decoder;
use crate::encode::{ObjectPath, WireError};
use sessile::vault::{ItemAttributes, Keychain, KeychainError, Secret};

const ITEM: &str = "org.freedesktop.Secret.Item";

/// Attempts of a search whose items are deleted before they are read.
const ATTEMPTS: u32 = 5;

/// Keychain behind the Secret Service of a D-Bus session.
pub struct SecretService {
    bus: Bus,
    session: ObjectPath,
    timeout: Duration,
}

/// Properties of an item, without its secret.
#[derive(Default)]
struct ItemProperties {
    attributes: ItemAttributes,
    /// Seconds since 1970.
    modified: u64,
}

impl SecretService {
    /// Connects to the bus at this address and opens a session with the service.
    pub fn connect(address: &str, uid: u32, timeout: Duration) -> Result<Self, KeychainError> {
        let mut bus = Bus::connect(address, uid, timeout)?;
        collection::greet(&mut bus)?;
        let reply = call(&mut bus, &root()?, (SERVICE, "OpenSession"), "sv", |body| {
            body.string("plain")?;
            body.signature("s")?;
            body.string("")
        })??;
        let mut body = reply.body("vo")?;
        // With `plain` the service has no parameters to exchange.
        body.skip_variant()?;
        let session = body.path()?;
        Ok(SecretService { bus, session, timeout })
    }

    fn create(
        &mut self,
        collection: &ObjectPath,
        label: &str,
        attributes: &[(&str, &str)],
        secret: &Secret,
    ) -> Result<(), KeychainError> {
        let session = &self.session;
        let reply = call(&mut self.bus, collection, (COLLECTION, "CreateItem"), "a{sv}(oayays)b", |body| {
            body.array(8, |body| {
                body.align(8);
                body.string("org.freedesktop.Secret.Item.Label")?;
                body.signature("s")?;
                body.string(label)?;
                body.align(8);
                body.string("org.freedesktop.Secret.Item.Attributes")?;
                body.signature("a{ss}")?;
                body.texts(attributes)
            })?;
            body.align(8);
            body.path(session)?;
            body.blob(&[])?;
            body.blob(secret.expose().as_bytes())?;
            body.string("text/plain; charset=utf8")?;
            // Replace an item with the same attributes.
            body.bool(true);
            Ok(())
        })??;
        let mut body = reply.body("oo")?;
        let (item, prompt) = (body.path()?, body.path()?);
        // A prompt would be shown to a person; it is never called, so nothing was stored.
        if item.is_none() || !prompt.is_none() { Err(KeychainError::Locked) } else { Ok(()) }
    }

    /// The items with these attributes, all of them unlocked.
    fn search(&mut self, attributes: &[(&str, &str)]) -> Result<Vec<ObjectPath>, KeychainError> {
        let reply =
            call(&mut self.bus, &root()?, (SERVICE, "SearchItems"), "a{ss}", |body| body.texts(attributes))??;
        let mut body = reply.body("aoao")?;
        let (mut items, locked) = (body.paths()?, body.paths()?);
        if !locked.is_empty() {
            collection::unlock(&mut self.bus, &locked)?;
            items.extend(locked);
        }
        Ok(items)
    }

    /// Reads items, without those that were deleted meanwhile.
    fn read(
        &mut self,
        items: &[ObjectPath],
    ) -> Result<Vec<(ObjectPath, ItemProperties, Secret)>, KeychainError> {
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let session = &self.session;
        let reply = call(&mut self.bus, &root()?, (SERVICE, "GetSecrets"), "aoo", |body| {
            body.array(4, |body| items.iter().try_for_each(|path| body.path(path)))?;
            body.path(session)
        })?;
        let reply = match reply {
            Err(error) if is_gone(&error) => return Ok(Vec::new()),
            reply => reply?,
        };
        let mut secrets = Vec::new();
        reply.body("a{o(oayays)}")?.array(8, |body| {
            secrets.push((body.path()?, secret(body)?));
            Ok(())
        })?;
        let mut found = Vec::new();
        for (item, secret) in secrets {
            // One call per item: the attributes are not part of `GetSecrets`.
            match collection::properties(&mut self.bus, &item, ITEM)? {
                Ok(reply) => found.push((item, about(&mut reply.body("a{sv}")?)?, secret)),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }
}

impl Keychain for SecretService {
    fn require_unlocked(&mut self) -> Result<(), KeychainError> {
        self.bus.allow(self.timeout);
        let collection = collection::find(&mut self.bus)?;
        collection::open(&mut self.bus, &collection)
    }

    fn put(
        &mut self,
        label: &str,
        attributes: &[(&str, &str)],
        secret: &Secret,
    ) -> Result<(), KeychainError> {
        self.bus.allow(self.timeout);
        let collection = collection::find(&mut self.bus)?;
        // First as it is: a collection is mostly open, and asking costs another call.
        let mut done = self.create(&collection, label, attributes, secret);
        if matches!(done, Err(KeychainError::Locked)) {
            collection::unlock(&mut self.bus, std::slice::from_ref(&collection))?;
            done = self.create(&collection, label, attributes, secret);
        }
        match done {
            // No service is known to say back what it was given; this makes sure.
            Err(KeychainError::Refused(text)) if text.contains(secret.expose()) => {
                Err(KeychainError::Refused("the item was rejected".to_owned()))
            }
            done => done,
        }
    }

    fn find(&mut self, attributes: &[(&str, &str)]) -> Result<Vec<(ItemAttributes, Secret)>, KeychainError> {
        self.bus.allow(self.timeout);
        let mut attempt = 1;
        loop {
            let items = self.search(attributes)?;
            let found = self.read(&items)?;
            // Replaced meanwhile, it may be there under another name. If they go on going, they are gone.
            if found.len() == items.len() || attempt == ATTEMPTS {
                return Ok(latest(found));
            }
            attempt += 1;
        }
    }

    fn remove(&mut self, attributes: &[(&str, &str)]) -> Result<usize, KeychainError> {
        self.bus.allow(self.timeout);
        let mut removed = 0;
        for item in self.search(attributes)? {
            match call(&mut self.bus, &item, (ITEM, "Delete"), "", |_| Ok(()))? {
                Ok(reply) if reply.body("o")?.path()?.is_none() => removed += 1,
                Ok(_) => return Err(KeychainError::Locked),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(removed)
    }
}

/// Whether an error means a missing item. Services use different errors.
fn is_gone(error: &ErrorReply) -> bool {
    matches!(
        error.name.strip_prefix("org.freedesktop."),
        Some(
            "Secret.Error.NoSuchObject"
                | "DBus.Error.UnknownObject"
                | "DBus.Error.UnknownInterface"
                | "DBus.Error.UnknownMethod"
        )
    )
}

/// The text in the structure that a secret is sent in.
fn secret(body: &mut Decoder<'_>) -> Result<Secret, WireError> {
    body.align(8)?;
    body.path()?;
    body.blob()?;
    let text = std::str::from_utf8(body.blob()?).map_err(|_| WireError("secret is not valid UTF-8"))?;
    body.string()?;
    Ok(Secret::new(text))
}

/// An item's properties, as far as they matter.
fn about(body: &mut Decoder<'_>) -> Result<ItemProperties, WireError> {
    let mut about = ItemProperties::default();
    body.array(8, |body| match body.string()? {
        "Attributes" => {
            body.variant("a{ss}")?;
            body.array(8, |body| {
                let name = body.string()?.to_owned();
                about.attributes.insert(name, body.string()?.to_owned());
                Ok(())
            })
        }
        "Modified" => {
            body.variant("t")?;
            about.modified = body.u64()?;
            Ok(())
        }
        _ => body.skip_variant(),
    })?;
    Ok(about)
}

/// One item for each set of attributes.
fn latest(mut found: Vec<(ObjectPath, ItemProperties, Secret)>) -> Vec<(ItemAttributes, Secret)> {
    // Names are numbered, so that within a second the longer or larger one is the later.
    found.sort_by_cached_key(|(path, about, _)| (about.modified, path.as_str().len(), path.clone()));
    let mut latest = BTreeMap::new();
    for (_, about, secret) in found {
        latest.insert(about.attributes, secret);
    }
    latest.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_resolve_to_the_last_modified() {
        let item = |path: &str, modified, value: &str, secret| {
            let attributes = BTreeMap::from([("k".to_owned(), value.to_owned())]);
            (ObjectPath::parse(path).unwrap(), ItemProperties { attributes, modified }, Secret::new(secret))
        };
        let found = vec![
            item("/c/10", 5, "a", "last"),
            item("/c/9", 5, "a", "before it"),
            item("/c/77", 4, "a", "long before"),
            item("/c/1", 1, "b", "another"),
        ];
        let latest: Vec<_> = latest(found).iter().map(|(_, secret)| secret.expose().to_owned()).collect();
        assert_eq!(latest, ["last", "another"]);
    }
}
