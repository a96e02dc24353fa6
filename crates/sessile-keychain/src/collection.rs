//! Collections of the Secret Service: choosing, unlocking; method calls to the service in general.

use crate::bus::{Bus, ErrorReply};
use crate::encode::{Encoder, ObjectPath, WireError};
use crate::message::{MethodCall, MethodReply};
use sessile::vault::KeychainError;

pub(crate) const SERVICE: &str = "org.freedesktop.Secret.Service";
pub(crate) const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// Calls a method of an object of the Secret Service.
pub(crate) fn call(
    bus: &mut Bus,
    path: &ObjectPath,
    (interface, member): (&str, &str),
    signature: &str,
    write: impl FnOnce(&mut Encoder) -> Result<(), WireError>,
) -> Result<Result<MethodReply, ErrorReply>, KeychainError> {
    let mut body = Encoder::default();
    write(&mut body)?;
    bus.call(&MethodCall { destination: "org.freedesktop.secrets", path, interface, member, signature, body })
}

/// The object that is the service itself.
pub(crate) fn root() -> Result<ObjectPath, WireError> {
    ObjectPath::parse("/org/freedesktop/secrets")
}

/// One property of an object, as a variant.
fn property(
    bus: &mut Bus,
    path: &ObjectPath,
    interface: &str,
    name: &str,
) -> Result<Result<MethodReply, ErrorReply>, KeychainError> {
    call(bus, path, (PROPERTIES, "Get"), "ss", |body| {
        body.string(interface)?;
        body.string(name)
    })
}

/// Registers this connection with the service before a session is opened. Any reply is accepted.
///
/// GNOME's daemon has one thread that receives calls and one that serves them. The first records the caller before
/// each call; while other callers come or go, the second can serve the call before it sees the record. An unknown
/// caller that opens a session, or reads a property of an item or a collection, makes the daemon abort
/// (`g_variant_new: expected GVariant of type 'v'`), which locks the keychain for all programs. Listing the
/// collections does not depend on the caller. After its reply the serving thread has seen the record.
pub(crate) fn greet(bus: &mut Bus) -> Result<(), KeychainError> {
    property(bus, &root()?, SERVICE, "Collections").map(drop)
}

/// All properties of an object, as a dictionary.
pub(crate) fn properties(
    bus: &mut Bus,
    path: &ObjectPath,
    interface: &str,
) -> Result<Result<MethodReply, ErrorReply>, KeychainError> {
    call(bus, path, (PROPERTIES, "GetAll"), "s", |body| body.string(interface))
}

/// The collection that new items go to.
pub(crate) fn find(bus: &mut Bus) -> Result<ObjectPath, KeychainError> {
    let root = root()?;
    let reply = call(bus, &root, (SERVICE, "ReadAlias"), "s", |body| body.string("default"))??;
    let default = reply.body("o")?.path()?;
    if !default.is_none() {
        return Ok(default);
    }
    let reply = property(bus, &root, SERVICE, "Collections")??;
    let mut body = reply.body("v")?;
    body.variant("ao")?;
    choose(body.paths()?).ok_or_else(|| KeychainError::Refused("no default collection found".to_owned()))
}

/// Collection to use without a default one.
fn choose(mut collections: Vec<ObjectPath>) -> Option<ObjectPath> {
    // What is in the one called so is forgotten when the user logs out.
    collections.retain(|path| !path.is_none() && !path.as_str().ends_with("/session"));
    let login = collections.iter().position(|path| path.as_str().ends_with("/login"));
    (!collections.is_empty()).then(|| collections.swap_remove(login.unwrap_or(0)))
}

/// Opens a collection.
pub(crate) fn open(bus: &mut Bus, collection: &ObjectPath) -> Result<(), KeychainError> {
    let reply = property(bus, collection, COLLECTION, "Locked")??;
    let mut body = reply.body("v")?;
    body.variant("b")?;
    if body.bool()? { unlock(bus, std::slice::from_ref(collection)) } else { Ok(()) }
}

/// Unlocks collections or items, if that needs nobody's password.
pub(crate) fn unlock(bus: &mut Bus, paths: &[ObjectPath]) -> Result<(), KeychainError> {
    let reply = call(bus, &root()?, (SERVICE, "Unlock"), "ao", |body| {
        body.array(4, |body| paths.iter().try_for_each(|path| body.path(path)))
    })??;
    let mut body = reply.body("aoo")?;
    let unlocked = body.paths()?;
    // Nobody sees a prompt before it is called, and it goes with the connection.
    if !body.path()?.is_none() || paths.iter().any(|path| !unlocked.contains(path)) {
        return Err(KeychainError::Locked);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_default_collection_falls_back_to_login() {
        let chosen = |names: &[&str]| {
            let path = |name: &&str| ObjectPath::parse(&format!("/c/{name}")).unwrap();
            choose(names.iter().map(path).collect()).map(|path| path.as_str()[3..].to_owned())
        };
        assert_eq!(chosen(&["session", "a", "login"]).as_deref(), Some("login"));
        assert_eq!(chosen(&["session", "b", "a"]).as_deref(), Some("b"));
        assert_eq!(chosen(&["session"]), None);
        assert_eq!(chosen(&[]), None);
    }
}
