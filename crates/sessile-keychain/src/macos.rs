//! Keychain of macOS: one generic password per item.
//!
//! Items of the macOS Keychain have a service and an account instead of attributes.

use security_framework::base::Error;
use security_framework::item::{ItemClass, ItemSearchOptions, Limit};
use security_framework::passwords::{delete_generic_password, get_generic_password, set_generic_password};

use sessile::vault::{ItemAttributes, Keychain, KeychainError, Secret};

/// Default keychain of the user.
pub(crate) struct MacosKeychain;

/// Item not found.
const NOT_FOUND: i32 = -25300;
/// Status `errSecInteractionNotAllowed`: a prompt is required but not possible.
const INTERACTION_NOT_ALLOWED: i32 = -25308;
/// Status `errSecAuthFailed`: the user failed to authenticate.
const AUTH_FAILED: i32 = -25293;
/// Status `errSecUserCanceled`: the user denied the prompt.
const USER_CANCELED: i32 = -128;
/// Status `errSecNotAvailable`: no keychain is available.
const NOT_AVAILABLE: i32 = -25291;
/// Status `errSecNoDefaultKeychain`: the user has no keychain, such as a user of services.
const NO_DEFAULT_KEYCHAIN: i32 = -25307;

impl Keychain for MacosKeychain {
    fn require_unlocked(&mut self) -> Result<(), KeychainError> {
        // The system unlocks it with the user's login, or asks by itself.
        Ok(())
    }

    fn put(
        &mut self,
        _label: &str,
        attributes: &[(&str, &str)],
        secret: &Secret,
    ) -> Result<(), KeychainError> {
        let (service, account) = place(attributes);
        set_generic_password(&service, &account, secret.expose().as_bytes()).map_err(failed)
    }

    fn find(&mut self, attributes: &[(&str, &str)]) -> Result<Vec<(ItemAttributes, Secret)>, KeychainError> {
        let (service, wanted) = place(attributes);
        // Without a name it is all of a kind.
        let accounts = if wanted.ends_with(' ') { accounts(&service, &wanted)? } else { vec![wanted] };
        let mut found = Vec::new();
        for account in accounts {
            match get_generic_password(&service, &account) {
                Ok(bytes) => {
                    let text = String::from_utf8(bytes)
                        .map_err(|_| KeychainError::Protocol("item is not valid UTF-8".into()))?;
                    let own =
                        attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
                    found.push((own.collect(), Secret::new(text)));
                }
                // It has gone meanwhile.
                Err(error) if error.code() == NOT_FOUND => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(found)
    }

    fn remove(&mut self, attributes: &[(&str, &str)]) -> Result<usize, KeychainError> {
        let (service, account) = place(attributes);
        match delete_generic_password(&service, &account) {
            Ok(()) => Ok(1),
            Err(error) if error.code() == NOT_FOUND => Ok(0),
            Err(error) => Err(failed(error)),
        }
    }
}

/// The service and the account of attributes: `sessile /state/dir` and `credential NAME`, or the purpose alone.
fn place(attributes: &[(&str, &str)]) -> (String, String) {
    let get =
        |wanted: &str| attributes.iter().find(|(name, _)| *name == wanted).map_or("", |(_, value)| *value);
    let service = format!("{} {}", get("application"), get("vault"));
    let account = match get("purpose") {
        "" | "credential" => format!("credential {}", get("credential")),
        other => format!("{other} {}", get("key")),
    };
    (service, account)
}

/// The accounts of a service that begin like this.
fn accounts(service: &str, begin: &str) -> Result<Vec<String>, KeychainError> {
    let mut options = ItemSearchOptions::new();
    options.class(ItemClass::generic_password()).service(service).load_attributes(true).limit(Limit::All);
    match options.search() {
        Ok(items) => {
            let accounts = items.iter().filter_map(|item| item.simplify_dict()?.remove("acct"));
            Ok(accounts.filter(|account| account.starts_with(begin)).collect())
        }
        Err(error) if error.code() == NOT_FOUND => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: Error) -> KeychainError {
    match error.code() {
        INTERACTION_NOT_ALLOWED | AUTH_FAILED | USER_CANCELED => KeychainError::Locked,
        code @ (NOT_AVAILABLE | NO_DEFAULT_KEYCHAIN) => KeychainError::Unreachable(format!("status {code}")),
        code => KeychainError::Refused(format!("status {code}")),
    }
}
