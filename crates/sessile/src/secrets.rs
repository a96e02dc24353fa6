//! Detection of secrets in values that would be stored or passed in the open.

use std::ffi::OsString;

use crate::error::{Result, UsageError};
use crate::text::{HIDDEN, shortened};

/// Hint against storing a secret; `{name}` is replaced by the application's name.
pub(crate) const USE_THE_VAULT: &str = "store it in the vault: {name} auth set NAME; then give that credential to commands: {name} context edit CONTEXT \
     --env-credential VARIABLE=NAME";

/// Limits of a printed command: number of words, and characters per word.
const MOST_WORDS: usize = 20;
const LONGEST_WORD: usize = 120;

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

/// Whether a variable of this name and value holds a secret. The check of names is stricter than for masking, because
/// refusing a harmless variable gets in the way.
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

/// Command for display: values are redacted if their name or form suggests a secret.
pub(crate) fn redacted_words(words: &[OsString]) -> Vec<String> {
    let mut shown = Vec::new();
    let mut is_value_of_secret = false;
    for word in words.iter().take(MOST_WORDS) {
        let word = word.to_string_lossy();
        let (name, value) =
            word.split_once('=').map_or((word.as_ref(), None), |(name, value)| (name, Some(value)));
        let is_named = looks_secret(name.trim_start_matches('-'));
        shown.push(match value {
            _ if is_value_of_secret
                || has_url_password(&word)
                || has_token(&word)
                || is_glued_password(&word) =>
            {
                HIDDEN.to_owned()
            }
            Some(_) if is_named => format!("{}={HIDDEN}", shortened(name, LONGEST_WORD)),
            // A script may hold anything.
            _ if word.contains(char::is_whitespace) && looks_secret(&word) => HIDDEN.to_owned(),
            _ => shortened(&word, LONGEST_WORD),
        });
        // `--token VALUE` and `--token=VALUE` are both common, so the word after such a flag is hidden too.
        is_value_of_secret = value.is_none() && is_named && name.starts_with('-');
    }
    shown
}

/// Whether a text holds a token that its beginning gives away.
fn has_token(text: &str) -> bool {
    /// Beginnings of tokens, followed by letters and digits only.
    const PLAIN: &[&str] =
        &["AKIA", "ASIA", "AIza", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "npm_", "hf_", "sst_", "dop_v1_"];
    /// Beginnings of tokens that have dashes, dots or underscores too.
    const DIVIDED: &[&str] =
        &["github_pat_", "glpat-", "sk-", "xoxa-", "xoxb-", "xoxp-", "xoxs-", "eyJ", "hvs."];
    /// Shortest rest of a token.
    const SHORTEST: usize = 12;
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    text.split(|c: char| !is_part(c)).any(|word| {
        let plain = PLAIN.iter().filter_map(|start| word.strip_prefix(start));
        let divided = DIVIDED.iter().filter_map(|start| word.strip_prefix(start));
        plain.filter(|rest| rest.bytes().all(|c| c.is_ascii_alphanumeric())).any(|rest| rest.len() >= SHORTEST)
            // Names of models and files begin like that, but have no digit or capital so early.
            || divided.filter(|rest| rest.bytes().any(|c| c.is_ascii_digit() || c.is_ascii_uppercase()))
                .any(|rest| rest.len() >= SHORTEST)
    })
}

/// Whether a word is `-p` with a password behind it, as clients of databases take it.
fn is_glued_password(word: &str) -> bool {
    /// Options of other programs that begin the same.
    const OPTIONS: &[&str] = &[
        "print", "print0", "printf", "path", "perm", "prune", "project", "profile", "plugin", "port", "pipe",
    ];
    let Some(rest) = word.strip_prefix("-p") else { return false };
    // Ports, and clusters of short flags.
    let is_number = rest.bytes().all(|c| c.is_ascii_digit() || b":./=".contains(&c));
    rest.len() > 3 && !is_number && !OPTIONS.contains(&word[1..].split('=').next().unwrap_or_default())
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
    fn secrets_differ_from_similar_names() {
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

    #[test]
    fn secrets_of_a_command_are_hidden() {
        let words =
            ["deploy", "--token", "t0p", "--password=hunter2", "API_KEY=k", "https://a:b@c/", "-v", "x=1"];
        let shown = redacted_words(&words.map(OsString::from));
        for secret in ["t0p", "hunter2", "=k", "a:b"] {
            assert!(!shown.iter().any(|word| word.contains(secret)), "{secret}: {shown:?}");
        }
        assert_eq!(shown.first().map(String::as_str), Some("deploy"));
        assert_eq!(shown[6..], ["-v", "x=1"]);
    }

    #[test]
    fn token_without_a_name_is_hidden() {
        let body = "A1b2C3d4E5f6G7h8I9j0";
        for start in
            ["AKIA", "ghp_", "gho_", "github_pat_", "glpat-", "sk-", "xoxb-", "sst_", "npm_", "hf_", "eyJ"]
        {
            for word in [format!("{start}{body}"), format!("Authorization: Bearer {start}{body}")] {
                assert_eq!(redacted_words(&[OsString::from(&word)]), [HIDDEN], "{word}");
            }
        }
        assert_eq!(redacted_words(&["-pTOPSECRET", "-phunter2"].map(OsString::from)), [HIDDEN, HIDDEN]);
        let harmless = [
            "-p",
            "-pr",
            "-pxz",
            "-p8080:80",
            "-p127.0.0.1:80:80",
            "-print0",
            "-path",
            "npm_config_registry",
            "sk-learn-pipeline",
            "hf_transfer",
            "eyJ",
            "AKIA",
            "--profile",
        ];
        assert_eq!(redacted_words(&harmless.map(OsString::from)), harmless);
    }
}
