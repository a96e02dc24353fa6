//! Interface to a keychain of the desktop. The backends are in the crate `sessile-keychain`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::vault::Secret;

/// Attributes of a keychain item, by name.
pub type ItemAttributes = BTreeMap<String, String>;

/// Function that connects to a keychain.
pub type KeychainConnector = fn(&KeychainEndpoint<'_>) -> Result<Box<dyn Keychain>, KeychainError>;

/// Endpoint of a keychain: address and user.
#[derive(Clone, Debug)]
pub struct KeychainEndpoint<'a> {
    /// Address of the D-Bus session bus. `None` without a desktop session.
    pub bus: Option<&'a str>,
    /// User that the bus authenticates.
    pub uid: u32,
    /// Time limit of the connection, and of each later operation as a whole.
    pub timeout: Duration,
}

/// Open connection to a keychain. No operation shows a prompt to the user.
pub trait Keychain {
    /// Fails if no item can be stored now, after trying to unlock the collection without a prompt.
    fn require_unlocked(&mut self) -> Result<(), KeychainError>;

    /// Stores an item in place of one with the same attributes.
    ///
    /// A Secret Service replaces an item that has *at least* these attributes. So all items of a kind must have the
    /// same attribute names: an item with fewer could replace one with more.
    fn put(&mut self, label: &str, attributes: &[(&str, &str)], secret: &Secret)
    -> Result<(), KeychainError>;

    /// Finds every item with at least these attributes. Of several with equal attributes, as different collections can
    /// hold them, the one modified last is returned. A service may add attributes of its own, such as `xdg:schema`.
    fn find(&mut self, attributes: &[(&str, &str)]) -> Result<Vec<(ItemAttributes, Secret)>, KeychainError>;

    /// Removes every item with these attributes and returns their number.
    fn remove(&mut self, attributes: &[(&str, &str)]) -> Result<usize, KeychainError>;
}

/// Error of a keychain.
#[derive(Debug)]
pub enum KeychainError {
    /// No bus, no keychain on it, or no answer in time.
    Unreachable(String),
    /// The user has to unlock the keychain first.
    Locked,
    /// The keychain answered with an error.
    Refused(String),
    /// The peer violates the protocol.
    Protocol(String),
}
