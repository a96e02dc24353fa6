//! Sites that a credential may be sent to: scheme, host and port.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sessile_wire::address::{AddressError, HttpOrigin};

use crate::error::{Error, UsageError};
use crate::text::shortened;

/// Server that a credential may be sent to: scheme, host and port. Two URLs of one site go to the same server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Site(HttpOrigin);

impl Site {
    /// Site of a URL. URLs that parsers read in different ways are refused: those with user names, spaces, backslashes.
    pub fn of_url(url: &str) -> Result<Self, Error> {
        let invalid = |expected: &str| {
            Error::Usage(UsageError::InvalidValue {
                place: "URL".into(),
                value: shortened(&without_user(url), 80),
                expected: expected.into(),
            })
        };
        let invalid_host = || invalid("a URL with a host name of letters, digits, '-' and '.'");
        let origin = HttpOrigin::of_url(url).map_err(|error| match error {
            AddressError::Malformed | AddressError::Insecure => invalid("a URL such as https://host/path"),
            AddressError::Scheme => invalid("a URL of http or https"),
            AddressError::UserInfo => invalid("a URL without a user name: a credential is kept by itself"),
            AddressError::Host => invalid_host(),
            AddressError::Port => invalid("a URL with a valid port"),
        })?;
        // Narrower than RFC 3986: delimiters in a host are read in different ways by parsers.
        let is_name = |host: &str| {
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.' || c == '_';
            !host.starts_with('.') && !host.contains("..") && host.chars().all(is_allowed)
        };
        if !origin.host().starts_with('[') && !is_name(origin.host()) {
            return Err(invalid_host());
        }
        if origin.port() == 0 {
            return Err(invalid("a URL with a valid port"));
        }
        Ok(Site(origin.normalized()))
    }

    /// Whether traffic is confidential: HTTPS or loopback.
    pub fn is_private(&self) -> bool {
        self.0.is_secure()
    }
}

/// A URL in the one form in which agents are compared: the site and the path, without a slash at its end.
pub fn agent_url(url: &str) -> Result<String, Error> {
    let site = Site::of_url(url)?;
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    // Queries and fragments do not identify an agent.
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let path = rest.find('/').map_or("", |at| &rest[at..]).trim_end_matches('/');
    // Servers and clients resolve dots differently, so that two URLs could compare as different agents.
    if path.split('/').any(|part| part == ".." || part == ".") {
        return Err(UsageError::InvalidValue {
            place: "URL".into(),
            value: format!("{site}{}", shortened(path, 60)),
            expected: "a URL without `.` and `..` in its path".into(),
        }
        .into());
    }
    Ok(format!("{site}{path}"))
}

/// URL without user information, which may hold a password.
pub(crate) fn without_user(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
            // A password that was not encoded may hold what ends the host.
            let is_password = !port.trim_end_matches(']').bytes().all(|byte| byte.is_ascii_hexdigit());
            let rest = if is_password { rest.rsplit('@').next().unwrap_or_default() } else { rest };
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let host = authority.rsplit('@').next().unwrap_or_default();
            let path = path.split(['?', '#']).next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.rsplit('@').next().unwrap_or_default().to_owned(),
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Site {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self, Error> {
        Site::of_url(url)
    }
}

impl TryFrom<String> for Site {
    type Error = Error;

    fn try_from(url: String) -> Result<Self, Error> {
        Site::of_url(&url)
    }
}

impl From<Site> for String {
    fn from(site: Site) -> String {
        site.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn site(url: &str) -> String {
        Site::of_url(url).unwrap().to_string()
    }

    #[test]
    fn one_server_is_one_site() {
        assert_eq!(site("https://API.example.com:443/v1?x=1#y"), "https://api.example.com");
        assert_eq!(site("https://api.example.com."), "https://api.example.com");
        assert_eq!(site("http://localhost:8000"), "http://localhost:8000");
        assert_eq!(site("http://[0:0::1]:80/"), "http://[::1]");
        assert_ne!(site("https://example.com"), site("http://example.com"));
        assert_ne!(site("https://example.com"), site("https://example.com:444"));
    }

    #[test]
    fn ambiguous_url_is_refused() {
        for url in [
            "",
            "example.com",
            "ftp://example.com",
            "https://",
            "https://user@example.com",
            "https://user:pw@example.com",
            "https://good.example\\@evil.example",
            "https://good.example\t.evil",
            "https://a..b",
            "https://.a",
            "https://a:99999",
            "https://a:-1",
            "https://a:0",
            "https://a:1:2",
            "https://[::1",
            "https://[::1]x",
            "https://caf\u{e9}.example",
            "https://a%2eb",
        ] {
            assert!(Site::of_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_refused_url_does_not_show_its_password() {
        let error = Site::of_url("https://me:hunter2@example.com/x?token=hunter2").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }

    proptest! {
        #[test]
        fn a_site_is_its_own_url(url in "https?://[a-zA-Z0-9.:@\\[\\]-]{0,20}[/?#]?.{0,10}") {
            if let Ok(found) = Site::of_url(&url) {
                prop_assert_eq!(Site::of_url(&found.to_string()).unwrap(), found);
            }
        }
    }
}
