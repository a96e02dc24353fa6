//! Detection of secrets in values that would be stored or passed in the open.

use crate::error::{Result, UsageError};

/// Hint against storing a secret; `{name}` stands for the application's.
pub(crate) const USE_THE_VAULT: &str = "store it in the vault: {name} auth set NAME; then give that credential to commands: {name} context edit CONTEXT \
     --env-credential VARIABLE=NAME";

/// Whether a URL in a text carries a password.
pub fn has_url_password(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        // A space ends a URL in running text.
        let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        // The last `@` ends the login: a password may hold one that is not encoded.
        let login = authority.rsplit_once('@').map(|(login, _)| login);
        login.and_then(|login| login.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
    })
}

/// Whether a variable of this name and value holds a secret. Names are judged with more care than where a value is only
/// hidden: a variable that is refused for nothing gets in the way.
pub fn is_secret(name: &str, value: &str) -> bool {
    has_url_password(value) || looks_secret(name) && !is_harmless(name, value)
}

/// Whether a name says that its value is a secret.
pub fn looks_secret(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "APIKEY",
        "API_KEY",
        "ACCESS_KEY",
        "PRIVATE_KEY",
        "CREDENTIAL",
        "AUTHORIZATION",
    ];
    /// Last words of a name of several words.
    const ENDS: &[&str] = &["_KEY", "_PAT", "_PWD", "_AUTH"];
    /// Words that end like a password and are none.
    const NOT_PASSWORDS: &[&str] = &["ASKPASS", "BYPASS", "COMPASS"];
    // Flags and settings use dashes where variables use underscores.
    let name = name.to_ascii_uppercase().replace('-', "_");
    WORDS.iter().any(|word| name.contains(word))
        || name == "AUTH"
        || ENDS.iter().any(|end| name.ends_with(end))
        || name.ends_with("PASS") && !NOT_PASSWORDS.iter().any(|word| name.ends_with(word))
}

/// Fails if a setting's key says that its value is a secret, or if a URL in it has a password: a session is kept in the
/// store, and no secret is.
pub(crate) fn refuse_secret(key: &str, value: &serde_json::Value) -> Result<()> {
    let name = key.rsplit('.').next().unwrap_or(key);
    if looks_secret(name) && !is_credential_name(key) || value.as_str().is_some_and(has_url_password) {
        return Err(UsageError::SecretRefused { place: key.to_owned(), instead: USE_THE_VAULT }.into());
    }
    Ok(())
}

/// Whether a setting holds the name of a credential: the call's, or that of a named agent.
pub(crate) fn is_credential_name(key: &str) -> bool {
    let is_of_agent = || key.strip_prefix("agents.").is_some_and(|rest| rest.ends_with(".credential"));
    key == "credential" || is_of_agent()
}

fn is_harmless(name: &str, value: &str) -> bool {
    /// Ends of names that lead to a secret, or that describe one.
    const ABOUT: &[&str] = &[
        "_FILE",
        "_PATH",
        "_DIR",
        "_HELPER",
        "_SOCK",
        "_URL",
        "_URI",
        "_ENDPOINT",
        "_ISSUER",
        "_NAME",
        "_TYPE",
        "_LIMIT",
        "_BUDGET",
        "_COUNT",
        "_LENGTH",
        "_TTL",
        "_TIMEOUT",
        "_EXPIRY",
    ];
    const FLAGS: &[&str] = &["", "true", "false", "yes", "no", "on", "off"];
    let name = name.to_ascii_uppercase().replace('-', "_");
    let is_path = value.starts_with('/') || value.starts_with("~/") || value.starts_with("./");
    // The way to log in, such as `instance_principal`.
    let is_method = || value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    ABOUT.iter().any(|end| name.ends_with(end))
        || name.ends_with("_AUTH") && is_method()
        // Numbers of tokens are settings of language models, not secrets.
        || ["TOKENS", "TOKENIZER"].iter().any(|word| name.contains(word))
        || ["CREDENTIALS", "_AUTH", "_PWD"].iter().any(|end| name.ends_with(end)) && is_path
        || FLAGS.contains(&value.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_from_what_only_sounds_like_one() {
        for (name, value) in [
            ("GH_TOKEN", "x"),
            ("db-password", "1234"),
            ("SECRET_KEY_BASE", "x"),
            ("AWS_SECRET_ACCESS_KEY", "/x"),
            ("APP_CREDENTIALS", "user and word"),
            ("MYSQL_PWD", "x"),
            ("SSHPASS", "x"),
            ("DB_PASS", "x"),
            ("GITHUB_PAT", "x"),
            ("NPM_CONFIG__AUTH", "dTpw"),
            ("_auth", "dTpw"),
            ("PGPASSWORD", "x"),
            ("REMOTE", "https://u:p@h/x"),
            ("TEXT", "see ftp://h and postgres://u:p@h:5432/db"),
            ("TOKEN_URL", "https://u:p@h/x"),
        ] {
            assert!(is_secret(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("GH_TOKEN", ""),
            ("TOKENIZERS_PARALLELISM", "false"),
            ("MAX_TOKENS", "4096"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/key.json"),
            ("TOKEN_FILE", "/run/token"),
            ("USE_TOKEN", "true"),
            ("PWD", "src"),
            ("OLDPWD", "src"),
            ("BUILD_PWD", "/src"),
            ("GIT_ASKPASS", "code --wait"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("USE_AUTH", "true"),
            ("OCI_CLI_AUTH", "instance_principal"),
            ("REGISTRY_AUTH", "/etc/auth.json"),
            ("CACHE_BYPASS", "1"),
            ("REMOTE", "https://u@h/x:y@z"),
            ("REMOTE", "https://u:@h/x"),
            ("PLAIN", "u:p@h"),
        ] {
            assert!(!is_secret(name, value), "{name}={value}");
        }
    }
}
