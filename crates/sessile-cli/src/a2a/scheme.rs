//! How an agent wants its callers to authenticate.

use std::collections::BTreeMap;

use serde_json::Value;

use super::part::text;

/// One way to authenticate, under the name that the card has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scheme {
    /// Its name in the card.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: SchemeKind,
}

/// What a scheme is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SchemeKind {
    /// `Authorization: Bearer`.
    Bearer,
    /// `Authorization: Basic`.
    Basic,
    /// `Authorization` with another word.
    Http(String),
    /// A key in a header, the query or a cookie.
    ApiKey {
        /// Where it stands: `header`, `query` or `cookie`.
        place: String,
        /// Its name there.
        name: String,
    },
    /// OAuth 2.
    OAuth2 {
        /// The flows, by their names in version 1.0.
        flows: BTreeMap<String, Flow>,
        /// Where the authorization server describes itself.
        metadata_url: Option<String>,
    },
    /// OpenID Connect.
    OpenIdConnect {
        /// Where the authorization server describes itself.
        url: String,
    },
    /// A certificate of the client's.
    MutualTls,
    /// Anything else.
    Other,
}

/// One way to get a token. The addresses are the card's word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    /// Where a person agrees.
    pub(crate) authorization_url: Option<String>,
    /// Where a device asks for its code.
    pub(crate) device_authorization_url: Option<String>,
    /// Where tokens come from.
    pub(crate) token_url: Option<String>,
    /// What can be asked for.
    pub(crate) scopes: Vec<String>,
}

impl Scheme {
    /// Those that a card names, of either version.
    pub(super) fn all(card: &Value) -> Vec<Self> {
        let Some(schemes) = card.get("securitySchemes").and_then(Value::as_object) else { return Vec::new() };
        schemes.iter().map(|(name, raw)| Scheme { name: name.clone(), kind: SchemeKind::read(raw) }).collect()
    }
}

impl SchemeKind {
    fn read(raw: &Value) -> Self {
        // Version 1.0 wraps each in its kind, version 0.3 says the kind inside.
        for (key, kind) in [
            ("apiKeySecurityScheme", "apiKey"),
            ("httpAuthSecurityScheme", "http"),
            ("oauth2SecurityScheme", "oauth2"),
            ("openIdConnectSecurityScheme", "openIdConnect"),
            ("mtlsSecurityScheme", "mutualTLS"),
        ] {
            if let Some(inner) = raw.get(key) {
                return SchemeKind::of(kind, inner);
            }
        }
        SchemeKind::of(&text(raw, &["type"]).unwrap_or_default(), raw)
    }

    fn of(kind: &str, raw: &Value) -> Self {
        match kind {
            "apiKey" => match (text(raw, &["location", "in"]), text(raw, &["name"])) {
                (Some(place), Some(name)) => SchemeKind::ApiKey { place: place.to_ascii_lowercase(), name },
                _ => SchemeKind::Other,
            },
            "http" => match text(raw, &["scheme"]).unwrap_or_default().to_ascii_lowercase().as_str() {
                "bearer" => SchemeKind::Bearer,
                "basic" => SchemeKind::Basic,
                other => SchemeKind::Http(other.to_owned()),
            },
            "oauth2" => {
                let flows = raw.get("flows").and_then(Value::as_object);
                let flows = flows.into_iter().flatten().map(|(name, flow)| (name.clone(), Flow::read(flow)));
                let metadata_url = text(raw, &["oauth2MetadataUrl"]);
                SchemeKind::OAuth2 { flows: flows.collect(), metadata_url }
            }
            "openIdConnect" => match text(raw, &["openIdConnectUrl"]) {
                Some(url) => SchemeKind::OpenIdConnect { url },
                None => SchemeKind::Other,
            },
            "mutualTLS" => SchemeKind::MutualTls,
            _ => SchemeKind::Other,
        }
    }
}

impl Flow {
    fn read(raw: &Value) -> Self {
        let scopes = raw.get("scopes").and_then(Value::as_object);
        Flow {
            authorization_url: text(raw, &["authorizationUrl"]),
            device_authorization_url: text(raw, &["deviceAuthorizationUrl"]),
            token_url: text(raw, &["tokenUrl"]),
            scopes: scopes.into_iter().flatten().map(|(scope, _)| scope.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_versions_name_the_same_schemes() {
        let flows = json!({"clientCredentials": {"tokenUrl": "https://id.example/t", "scopes": {"a": ""}}});
        let old = json!({"securitySchemes": {
            "b": {"type": "http", "scheme": "Bearer"}, "c": {"type": "http", "scheme": "basic"},
            "d": {"type": "apiKey", "in": "header", "name": "X-Key"}, "e": {"type": "oauth2", "flows": flows},
            "f": {"type": "openIdConnect", "openIdConnectUrl": "https://id.example/"}, "g": {"type": "mutualTLS"},
            "h": {"type": "telepathy"},
        }});
        let new = json!({"securitySchemes": {
            "b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
            "c": {"httpAuthSecurityScheme": {"scheme": "basic"}},
            "d": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
            "e": {"oauth2SecurityScheme": {"flows": flows}},
            "f": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://id.example/"}},
            "g": {"mtlsSecurityScheme": {}}, "h": {"telepathySecurityScheme": {}},
        }});
        let all = Scheme::all(&new);
        assert_eq!(all, Scheme::all(&old));
        assert_eq!(all[2].kind, SchemeKind::ApiKey { place: "header".into(), name: "X-Key".into() });
        let SchemeKind::OAuth2 { flows, .. } = &all[3].kind else { panic!("{all:?}") };
        assert_eq!(flows["clientCredentials"].scopes, ["a"]);
        assert_eq!(all[6].kind, SchemeKind::Other);
    }
}
