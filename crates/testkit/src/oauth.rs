//! A real authorization server on this machine: `oidc-provider`, which is certified.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::node::{NodeServer, get};

/// The grant of device codes, as requests and counts name it.
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// An authorization server on a port of its own, which ends when this is dropped.
///
/// Refresh tokens are given for the scope `offline_access` and rotate; one that is used twice revokes its whole line.
pub struct OidcServer {
    server: NodeServer,
}

/// Options of a server.
pub struct OidcOptions {
    /// Lifetime of access tokens.
    pub access_seconds: u64,
    /// Lifetime of device codes.
    pub device_seconds: u64,
    /// Delay of each token request.
    pub delay_millis: u64,
    /// Number of revocation requests that get status 503 before the first is served.
    pub failed_revocations: u64,
}

impl Default for OidcOptions {
    fn default() -> Self {
        OidcOptions { access_seconds: 60, device_seconds: 600, delay_millis: 0, failed_revocations: 0 }
    }
}

impl OidcServer {
    /// A client without a secret, for device codes.
    pub const PUBLIC_CLIENT: &str = "terminal";
    /// A client with a secret, for its own credentials and for device codes.
    pub const SECRET_CLIENT: &str = "robot:1";
    /// Secret; it holds what must be encoded.
    pub const SECRET: &str = "s3cret: /+%&=";
    /// The scopes there are.
    pub const SCOPES: [&str; 5] = ["openid", "offline_access", "email", "api:read", "api:write"];

    /// Starts one.
    #[track_caller]
    pub fn start() -> Self {
        OidcServer::with(&OidcOptions::default())
    }

    /// Starts one of this kind.
    #[track_caller]
    pub fn with(options: &OidcOptions) -> Self {
        let options = json!({
            "public_client": OidcServer::PUBLIC_CLIENT,
            "secret_client": OidcServer::SECRET_CLIENT,
            "secret": OidcServer::SECRET,
            "access_seconds": options.access_seconds,
            "device_seconds": options.device_seconds,
            "delay_millis": options.delay_millis,
            "failed_revocations": options.failed_revocations,
        });
        let entry = provider();
        let entry = entry.to_str().expect("a path that is text");
        let arguments = [entry, &options.to_string()];
        OidcServer { server: NodeServer::start(include_str!("oidc.mjs"), &arguments, Path::new("/")) }
    }

    /// Issuer, `http://127.0.0.1:PORT`.
    pub fn issuer(&self) -> &str {
        self.server.address()
    }

    /// The address of a path that begins with a slash: `/token`, `/device/auth`, `/whoami`.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.issuer())
    }

    /// Says yes to a user code, as this account.
    #[track_caller]
    pub fn approve(&self, user_code: &str, account: &str) {
        let (status, body) = get(&self.url(&format!("/decide?user_code={user_code}&account={account}")), "");
        assert_eq!(status, 200, "{body}");
    }

    /// Says no to a user code.
    #[track_caller]
    pub fn deny(&self, user_code: &str) {
        let (status, body) = get(&self.url(&format!("/decide?user_code={user_code}&deny=1")), "");
        assert_eq!(status, 200, "{body}");
    }

    /// Whose an access token is, if it is valid now: an account's, or a client's own. Only for tokens without a resource.
    #[track_caller]
    pub fn whoami(&self, access_token: &str) -> Option<String> {
        let header = format!("Authorization: Bearer {access_token}\r\n");
        let (status, body) = get(&self.url("/whoami"), &header);
        let body: Value = serde_json::from_str(&body).expect("JSON");
        match status {
            200 => Some(body["account"].as_str().expect("an account").to_owned()),
            401 => None,
            status => panic!("/whoami answered with status {status}"),
        }
    }

    /// Counts of token requests so far.
    #[track_caller]
    pub fn counts(&self) -> OidcCounts {
        let (_, body) = get(&self.url("/counts"), "");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let count = |side: &str, grant: &str| body[side][grant].as_u64().unwrap_or(0);
        OidcCounts {
            client_credentials: count("served", "client_credentials"),
            device_code: count("served", DEVICE_GRANT),
            refresh_token: count("served", "refresh_token"),
            refused_client_credentials: count("refused", "client_credentials"),
            refused_device_code: count("refused", DEVICE_GRANT),
            refused_refresh_token: count("refused", "refresh_token"),
        }
    }
}

/// How many requests for tokens were served and how many refused, by grant; a code that is still pending is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the field names are self-explanatory")]
pub struct OidcCounts {
    pub client_credentials: u64,
    pub device_code: u64,
    pub refresh_token: u64,
    pub refused_client_credentials: u64,
    pub refused_device_code: u64,
    pub refused_refresh_token: u64,
}

/// Package directory of `scripts/test`.
#[track_caller]
fn provider() -> PathBuf {
    let tested = std::env::current_exe().expect("the test's own path");
    let entry = "test-tools/oidc/node_modules/oidc-provider/lib/index.js";
    tested.ancestors().map(|dir| dir.join(entry)).find(|path| path.is_file()).unwrap_or_else(|| {
        panic!(
            "this test needs oidc-provider; scripts/test installs it \
             (or by hand: npm install --prefix target/test-tools/oidc oidc-provider@9)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{OidcCounts, OidcServer};
    use crate::node::get;

    #[test]
    fn server_rejects_foreign_tokens() {
        let server = OidcServer::start();
        let (status, body) = get(&server.url("/.well-known/openid-configuration"), "");
        assert_eq!(status, 200);
        assert!(body.contains(&format!("\"issuer\":\"{}\"", server.issuer())), "{body}");
        assert_eq!(server.whoami("made-up"), None);
        assert_eq!(server.counts(), OidcCounts::default());
        let address = server.issuer()["http://".len()..].to_owned();
        drop(server);
        assert!(std::net::TcpStream::connect(address).is_err());
    }
}
