//! Letting a machine in by a code: it asks, shows a short code, and collects its token when somebody who administers the store
//! has approved that code.
//!
//! Nothing secret lies in the store meanwhile: both codes are kept as hashes, and the token is made when it is collected.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sessile::vault::Secret;

use crate::account::{Administer, Asked, Collected, Decision, Login, Minted, Token};
use crate::ids::{SecretHash, TokenId, TokenSecret, UserName};
use crate::store::ServiceStore;
use crate::users::{self, UserError};

/// How long there is to approve a code and to collect the token.
pub const LIFE_MS: i64 = 900_000;

/// How often the token should be asked for.
pub const INTERVAL_MS: i64 = 2000;

/// What a device code begins with, so that one that lies about is recognised.
const PREFIX: &str = "ssd_";

/// Consonants only: they make no words, and none is taken for another or for a digit.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// How many letters a code has, in two halves.
const LENGTH: usize = 8;

/// What a machine that asked to be let in is told.
#[derive(Debug)]
pub struct Begun {
    /// What it collects its token with. It is nowhere else.
    pub device_code: Secret,
    /// What somebody has to approve.
    pub user_code: String,
}

/// What collecting came to.
#[derive(Debug)]
pub enum Outcome {
    /// The token, and its secret, which is nowhere else.
    Token(Token, TokenSecret),
    /// Nobody has decided yet.
    Pending,
    /// It was refused.
    Denied,
    /// There is nothing to collect: there never was, its time is over, or it was collected.
    Nothing,
}

/// Puts down a machine that asks to be let in; nothing if `most` are there already.
pub async fn begin(
    db: &ServiceStore,
    client: &str,
    peer: Option<String>,
    most: i64,
) -> Result<Option<Begun>, UserError> {
    let device_code = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random::<32>()?));
    let user_code = code()?;
    let asked = Asked {
        device_hash: SecretHash::of(&device_code),
        code_hash: SecretHash::of(&user_code),
        client: client.to_owned(),
        peer,
        lives_ms: LIFE_MS,
    };
    let is_begun = db.begin_login(asked, most).await?;
    let begun = Begun { device_code: Secret::new(device_code), user_code: in_halves(&user_code) };
    Ok(is_begun.then_some(begun))
}

/// The machine that shows a code, as it was typed.
pub async fn find(db: &ServiceStore, code: &str) -> Result<Login, UserError> {
    let no_login = || UserError::NoLogin(code.to_owned());
    let letters = letters(code).ok_or_else(no_login)?;
    db.login(&SecretHash::of(&letters)).await?.ok_or_else(no_login)
}

/// The user with a name, who must exist.
pub async fn check_user(db: &ServiceStore, name: &str) -> Result<UserName, UserError> {
    let user = users::existing(name)?;
    if db.accounts().await?.iter().any(|account| account.user == user) {
        return Ok(user);
    }
    Err(UserError::NoUser(name.to_owned()))
}

/// Decides about the machine that shows a code.
pub async fn decide(db: &ServiceStore, code: &str, decision: Decision) -> Result<(), UserError> {
    let no_login = || UserError::NoLogin(code.to_owned());
    if let Decision::Approve { user, scopes, .. } = &decision {
        if scopes.is_empty() {
            return Err(UserError::NoScope);
        }
        check_user(db, user.as_str()).await?;
    }
    let letters = letters(code).ok_or_else(no_login)?;
    let approved = match &decision {
        Decision::Approve { user, .. } => Some(user.clone()),
        Decision::Deny => None,
    };
    let decided = db.administer(Administer::Decide(SecretHash::of(&letters), decision)).await?;
    decided.map_err(|_| no_login())?;
    match approved {
        Some(user) => users::record(db, &user, "login.approve", None).await,
        None => Ok(()),
    }
}

/// Makes the token of a machine that was approved. It gets it once.
pub async fn collect(db: &ServiceStore, device_code: &str) -> Result<Outcome, UserError> {
    // The token is there before it is known whether it is needed, so that making it is one step of the store's.
    let secret = TokenSecret::generate().map_err(|error| no_random(&error))?;
    let id = TokenId::generate().map_err(|error| no_random(&error))?;
    let minted = Minted { id, hash: secret.hash() };
    Ok(match db.collect_login(&SecretHash::of(device_code), minted).await? {
        Collected::Token(token) => {
            // The token is made and counts: that it is not on the record keeps nobody from it.
            let _ = users::record(db, &token.user, "token.create", Some(token.id.clone())).await;
            Outcome::Token(token, secret)
        }
        Collected::Pending => Outcome::Pending,
        Collected::Denied => Outcome::Denied,
        Collected::Nothing => Outcome::Nothing,
    })
}

fn random<const N: usize>() -> Result<[u8; N], UserError> {
    sessile::random::bytes().map_err(|error| no_random(&error))
}

fn no_random(error: &sessile::Error) -> UserError {
    UserError::Random(error.to_string())
}

/// A code that nobody can guess in the time that it counts, without the dash.
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
    fn a_code_is_known_however_it_is_typed() {
        assert_eq!(in_halves("BCDFGHJK"), "BCDF-GHJK");
        for typed in ["BCDF-GHJK", "bcdfghjk", " bcdf ghjk ", "BCDF--ghjk"] {
            assert_eq!(letters(typed).as_deref(), Some("BCDFGHJK"), "{typed}");
        }
        for wrong in ["", "BCDF-GHJ", "BCDF-GHJKL", "ABCD-EFGH", "BCDF_GHJK", "\u{c4}CDF-GHJK"] {
            assert_eq!(letters(wrong), None, "{wrong}");
        }
    }
}
