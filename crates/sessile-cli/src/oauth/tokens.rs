//! Responses of token endpoints.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sessile::vault::Secret;
use zeroize::Zeroizing;

use super::OAuthError;
use super::fields::{JsonFields, required};

/// The claims that say whose tokens they are, the most telling first.
const ACCOUNT: [&str; 3] = ["email", "preferred_username", "sub"];

/// Access token and its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// The access token.
    pub(crate) access: Secret,
    /// Refresh token. After a refresh, `None` means that the previous one stays valid.
    pub(crate) refresh: Option<Secret>,
    /// The seconds that the access token is valid for.
    pub(crate) expires_in: Option<u64>,
    /// Granted scopes; `None` means the requested ones.
    pub(crate) scopes: Option<Vec<String>>,
    /// Account. Untrusted text.
    pub(crate) account: Option<String>,
}

impl Tokens {
    /// Reads a token endpoint's answer.
    pub(super) fn read(fields: &JsonFields<'_>) -> Result<Self, OAuthError> {
        // A token of another type, such as DPoP, is of no use as a bearer token (RFC 6749, 7.1).
        let kind = required("token_type", fields.text("token_type")?)?;
        if !kind.eq_ignore_ascii_case("bearer") {
            return Err(OAuthError::Malformed("token_type is not Bearer".to_owned()));
        }
        // The protocol separates scopes by spaces; servers that use commas are older than it.
        let split = |scopes: String| {
            let scopes = scopes.split([' ', ',']).filter(|scope| !scope.is_empty());
            scopes.map(str::to_owned).collect()
        };
        Ok(Tokens {
            access: required("access_token", fields.secret("access_token")?)?,
            refresh: fields.secret("refresh_token")?,
            expires_in: fields.seconds("expires_in")?,
            scopes: fields.text("scope")?.map(split),
            account: fields.secret("id_token")?.and_then(|token| account(&token)),
        })
    }
}

/// Account in the answer of an introspection endpoint; none for a token that is not active.
pub(super) fn introspected_account(fields: &JsonFields<'_>) -> Option<String> {
    const CLAIMS: [&str; 4] = ["email", "preferred_username", "username", "sub"];
    let is_active = fields.is_true("active");
    CLAIMS.iter().find_map(|name| fields.text(name).ok().flatten()).filter(|_| is_active)
}

/// Account in an id token. The token is not verified, because it comes from the token endpoint itself. An unreadable
/// one has no account.
fn account(id_token: &Secret) -> Option<String> {
    let claims = id_token.expose().split('.').nth(1)?;
    // JSON Web Tokens have no padding, but some servers add it.
    let claims = Zeroizing::new(URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?);
    let claims = Secret::new(std::str::from_utf8(&claims).ok()?);
    let claims = JsonFields::read(&claims).ok()?;
    ACCOUNT.iter().find_map(|name| claims.text(name).ok().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Tokens, String> {
        let body = Secret::new(body);
        Tokens::read(&JsonFields::read(&body).unwrap()).map_err(|error| error.to_string())
    }

    fn id_token(claims: &str) -> Secret {
        Secret::new(format!("eyJhbGciOiJub25lIn0.{}.sig", URL_SAFE_NO_PAD.encode(claims)))
    }

    #[test]
    fn minimal_and_full_token_responses_are_parsed() {
        let tokens = read(r#"{"access_token": "a", "token_type": "bearer"}"#).unwrap();
        let none =
            Tokens { access: Secret::new("a"), refresh: None, expires_in: None, scopes: None, account: None };
        assert_eq!(tokens, none);
        let tokens = read(
            r#"{"access_token": "a", "token_type": "BEARER", "refresh_token": "r", "expires_in": "60",
                "scope": "repo gist,user", "id_token": "no.token", "more": {"x": [1]}}"#,
        );
        let tokens = tokens.unwrap();
        assert_eq!((tokens.refresh.as_ref().unwrap().expose(), tokens.expires_in), ("r", Some(60)));
        assert_eq!(tokens.scopes.as_deref().unwrap(), ["repo", "gist", "user"]);
        assert!(!format!("{tokens:?}").contains("\"r\""), "{tokens:?}");
    }

    #[test]
    fn invalid_token_response_names_the_field_without_its_value() {
        for (body, field) in [
            (r#"{"access_token": "hunter2"}"#, "token_type is missing"),
            (r#"{"access_token": "hunter2", "token_type": "DPoP"}"#, "token_type is not Bearer"),
            (r#"{"refresh_token": "hunter2", "token_type": "Bearer"}"#, "access_token is missing"),
            (r#"{"access_token": "", "token_type": "Bearer"}"#, "access_token is missing"),
            (r#"{"access_token": ["hunter2"], "token_type": "Bearer"}"#, "access_token is not a text"),
            (
                r#"{"access_token": "a", "token_type": "Bearer", "refresh_token": {"hunter2": 1}}"#,
                "refresh_token is not a text",
            ),
            (
                r#"{"access_token": "a", "token_type": "Bearer", "expires_in": "hunter2"}"#,
                "expires_in is not a number of seconds",
            ),
        ] {
            let told = read(body).unwrap_err();
            assert!(told.ends_with(field) && !told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn only_an_active_token_has_an_account() {
        let account = |body: &str| introspected_account(&JsonFields::read(&Secret::new(body)).unwrap());
        assert_eq!(account(r#"{"active": true, "sub": "1", "username": "ada"}"#).as_deref(), Some("ada"));
        assert_eq!(account(r#"{"active": true, "sub": "1"}"#).as_deref(), Some("1"));
        for none in
            [r#"{"active": false, "sub": "1"}"#, r#"{"sub": "1"}"#, r#"{"active": "true", "sub": "1"}"#]
        {
            assert_eq!(account(none), None, "{none}");
        }
    }

    #[test]
    fn account_comes_from_the_most_specific_claim() {
        let all = r#"{"sub": "1", "preferred_username": "ada", "email": "ada@example.test"}"#;
        assert_eq!(account(&id_token(all)).as_deref(), Some("ada@example.test"));
        assert_eq!(
            account(&id_token(r#"{"sub": "1", "preferred_username": "ada"}"#)).as_deref(),
            Some("ada")
        );
        assert_eq!(account(&id_token(r#"{"sub": "1", "email": 7}"#)).as_deref(), Some("1"));
        for odd in ["", "a.b.c", "..", "a", "a.\u{e9}.c", "e30.e30.e30"] {
            assert_eq!(account(&Secret::new(odd)), None, "{odd}");
        }
    }
}
