//! Letting a machine in by a code: it asks, shows a short code, and collects its token when somebody who administers the store
//! has approved that code.
//!
//! The store holds no secret meanwhile: both codes are hashed, and the token is created when it is collected.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sessile::vault::Secret;

use crate::account::{AccountChange, Login, LoginCollection, LoginDecision, NewLogin, NewTokenHash, Token};
use crate::ids::{SecretHash, TokenId, TokenSecret, UserName};
use crate::store::ServiceStore;
use crate::users::{self, UserError};

/// Time in which a code must be approved and the token collected, in milliseconds.
pub const LIFE_MS: i64 = 900_000;

/// Interval at which a client polls for the token, in milliseconds.
pub const INTERVAL_MS: i64 = 2000;

/// Prefix of device codes, so that scanners recognize a leaked one.
const PREFIX: &str = "ssd_";

/// Consonants that form no words and are not confused with each other or with digits.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// Number of letters of a user code, in two halves.
const LENGTH: usize = 8;

/// Codes of a device login.
#[derive(Debug)]
pub struct LoginCodes {
    /// Device code, by which the client collects its token. Only its hash is stored.
    pub device_code: Secret,
    /// User code, which an administrator approves.
    pub user_code: String,
}

/// Result of collecting the token of a device login.
#[derive(Debug)]
pub enum LoginOutcome {
    /// The token with its secret, which is stored nowhere.
    Token(Token, TokenSecret),
    /// The login is not decided yet.
    Pending,
    /// The login was denied.
    Denied,
    /// No such login: it never existed, expired, or was collected.
    Nothing,
}

/// Begins a device login; none if `most` are pending already.
pub async fn begin(
    db: &ServiceStore,
    client: &str,
    peer: Option<String>,
    most: i64,
) -> Result<Option<LoginCodes>, UserError> {
    let device_code = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random::<32>()?));
    let user_code = code()?;
    let asked = NewLogin {
        device_hash: SecretHash::of(&device_code),
        code_hash: SecretHash::of(&user_code),
        client: client.to_owned(),
        peer,
        lives_ms: LIFE_MS,
    };
    let is_begun = db.begin_login(asked, most).await?;
    let begun = LoginCodes { device_code: Secret::new(device_code), user_code: in_halves(&user_code) };
    Ok(is_begun.then_some(begun))
}

/// Pending login with a user code, as it was typed.
pub async fn find(db: &ServiceStore, code: &str) -> Result<Login, UserError> {
    let no_login = || UserError::NoLogin(code.to_owned());
    let letters = letters(code).ok_or_else(no_login)?;
    db.login(&SecretHash::of(&letters)).await?.ok_or_else(no_login)
}

/// User of a name; fails if unknown or disabled.
pub async fn check_user(db: &ServiceStore, name: &str) -> Result<UserName, UserError> {
    let user = users::existing(name)?;
    users::require_enabled(db, &user).await?;
    Ok(user)
}

/// Approves or denies the login with a user code.
pub async fn decide(db: &ServiceStore, code: &str, decision: LoginDecision) -> Result<(), UserError> {
    let no_login = || UserError::NoLogin(code.to_owned());
    if let LoginDecision::Approve { user, scopes, .. } = &decision {
        if scopes.is_empty() {
            return Err(UserError::NoScope);
        }
        check_user(db, user.as_str()).await?;
    }
    let letters = letters(code).ok_or_else(no_login)?;
    let approved = match &decision {
        LoginDecision::Approve { user, .. } => Some(user.clone()),
        LoginDecision::Deny => None,
    };
    let decided = db.administer(AccountChange::Decide(SecretHash::of(&letters), decision)).await?;
    decided.map_err(|_| no_login())?;
    match approved {
        Some(user) => users::record(db, &user, "login.approve", None).await,
        None => Ok(()),
    }
}

/// Creates the token of an approved login, once.
pub async fn collect(db: &ServiceStore, device_code: &str) -> Result<LoginOutcome, UserError> {
    // The token is there before it is known whether it is needed, so that making it is one step of the store's.
    let secret = TokenSecret::generate().map_err(|error| no_random(&error))?;
    let id = TokenId::generate().map_err(|error| no_random(&error))?;
    let minted = NewTokenHash { id, hash: secret.hash() };
    Ok(match db.collect_login(&SecretHash::of(device_code), minted).await? {
        LoginCollection::Token(token) => {
            // The token is made and counts: that it is not on the record keeps nobody from it.
            let _ = users::record(db, &token.user, "token.create", Some(token.id.clone())).await;
            LoginOutcome::Token(token, secret)
        }
        LoginCollection::Pending => LoginOutcome::Pending,
        LoginCollection::Denied => LoginOutcome::Denied,
        LoginCollection::Nothing => LoginOutcome::Nothing,
    })
}

fn random<const N: usize>() -> Result<[u8; N], UserError> {
    sessile::random::bytes().map_err(|error| no_random(&error))
}

fn no_random(error: &sessile::Error) -> UserError {
    UserError::Random(error.to_string())
}

/// A random user code, without the dash.
fn code() -> Result<String, UserError> {
    let mut code = String::new();
    while code.len() < LENGTH {
        // Every letter is as likely as any other: what is left over of a byte is not used.
        let fair = random::<16>()?.into_iter().filter(|byte| *byte < 240).map(usize::from);
        let letters = fair.filter_map(|byte| LETTERS.get(byte % LETTERS.len())).map(|byte| char::from(*byte));
        code.extend(letters.take(LENGTH - code.len()));
    }
    Ok(code)
}

fn in_halves(code: &str) -> String {
    let (first, second) = code.split_at(LENGTH / 2);
    format!("{first}-{second}")
}

/// The letters of a code, however it was typed.
fn letters(code: &str) -> Option<String> {
    let typed = code.chars().filter(|letter| !matches!(letter, '-' | ' '));
    let letters: String = typed.map(|letter| letter.to_ascii_uppercase()).collect();
    let fits = letters.len() == LENGTH && letters.bytes().all(|letter| LETTERS.contains(&letter));
    fits.then_some(letters)
}

#[cfg(test)]
mod tests {
    use super::{LETTERS, code, in_halves, letters};

    #[test]
    fn codes_use_every_letter_and_no_other() {
        let many: String = (0..200).map(|_| code().unwrap()).collect();
        assert_eq!(many.len(), 1600);
        for letter in LETTERS.iter().map(|byte| char::from(*byte)) {
            // 80 on average.
            let count = many.matches(letter).count();
            assert!((30..150).contains(&count), "{letter}: {count}");
        }
        assert!(many.bytes().all(|byte| LETTERS.contains(&byte)));
    }

    #[test]
    fn user_code_is_normalized() {
        assert_eq!(in_halves("BCDFGHJK"), "BCDF-GHJK");
        for typed in ["BCDF-GHJK", "bcdfghjk", " bcdf ghjk ", "BCDF--ghjk"] {
            assert_eq!(letters(typed).as_deref(), Some("BCDFGHJK"), "{typed}");
        }
        for wrong in ["", "BCDF-GHJ", "BCDF-GHJKL", "ABCD-EFGH", "BCDF_GHJK", "\u{c4}CDF-GHJK"] {
            assert_eq!(letters(wrong), None, "{wrong}");
        }
    }
}
